#include "split/flow/draft_pace.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "split/flow/draft_tally.h"
#include "split/flow/place_rule.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// A loaded cloud behind a middling link.
constexpr DraftFacts kLoaded{.guess_seconds = 0.02,
                             .begin_seconds = 0.03,
                             .cloud_seconds = 0.1,
                             .round_trip_seconds = 0.02,
                             .odds = 0.9};

TEST(DraftPace, ALoadedCloudIsHelpedByAFastEnd) {
  const DraftPlan plan = PlanDraft(kLoaded);
  // Twice what the cloud takes for a pass and a round trip: six guesses, and one.
  EXPECT_EQ(plan.ahead, 14u);
  // 0.05 / 0.08 tokens until it has overtaken, so 0.9^1.625 of the tokens come in time.
  EXPECT_NEAR(plan.token_seconds, 0.1 - 0.843 * 0.065, 1e-3);
}

TEST(DraftPace, AnEndThatIsNotFasterThanTheCloudDraftsNothing) {
  DraftFacts facts = kLoaded;
  facts.guess_seconds = 0.1;
  EXPECT_EQ(PlanDraft(facts), (DraftPlan{.token_seconds = 0.1, .cloud_seconds = 0.1}));
  EXPECT_EQ(PlanDraft({}), DraftPlan());
}

TEST(DraftPace, ALongerRoundTripWantsALongerDraftAndGainsLess) {
  DraftFacts facts = kLoaded;
  facts.odds = 0.95;
  DraftPlan before = PlanDraft(facts);
  for (const double seconds : {0.04, 0.08, 0.16}) {
    facts.round_trip_seconds = seconds;
    const DraftPlan plan = PlanDraft(facts);
    EXPECT_GT(plan.ahead, before.ahead);
    EXPECT_GT(plan.token_seconds, before.token_seconds);
    before = plan;
  }
}

TEST(DraftPace, AGuessThatIsHardlyEverReachedIsNotMade) {
  DraftFacts facts = kLoaded;
  facts.odds = 0.5;
  EXPECT_EQ(PlanDraft(facts).ahead, 3u);  // 0.5^4 < 0.1
  facts.odds = 0;
  EXPECT_EQ(PlanDraft(facts).ahead, 0u);
}

TEST(DraftPace, BetterOddsAndFasterGuessesNeverCostAndNothingIsBelowAGuess) {
  Rng rng(TestSeed());
  for (int round = 0; round < 5000; ++round) {
    DraftFacts facts{.guess_seconds = 0.001 + rng.Uniform(),
                     .begin_seconds = rng.Uniform(),
                     .cloud_seconds = 0.001 + rng.Uniform(),
                     .round_trip_seconds = 0.2 * rng.Uniform(),
                     .odds = rng.Uniform()};
    const DraftPlan plan = PlanDraft(facts);
    ASSERT_LE(plan.ahead, 64u);
    ASSERT_LE(plan.token_seconds, facts.cloud_seconds * (1 + 1e-12));
    ASSERT_GE(plan.token_seconds, std::min(facts.guess_seconds, facts.cloud_seconds));
    DraftFacts better = facts;
    better.odds = facts.odds + (1 - facts.odds) * rng.Uniform();
    ASSERT_LE(PlanDraft(better).token_seconds, plan.token_seconds * (1 + 1e-12));
    better = facts;
    better.guess_seconds *= rng.Uniform();
    if (better.guess_seconds <= 0) continue;
    ASSERT_LE(PlanDraft(better).token_seconds, plan.token_seconds * (1 + 1e-12));
  }
}

TEST(DraftMeter, FollowsWhatGuessesTakeAndHowOftenTheyAreRight) {
  DraftMeter meter;
  EXPECT_EQ(meter.Plan(0.05, 0.1, 0.01, 0).token_seconds, PlanDraft({.guess_seconds = 0.05,
                                                                     .begin_seconds = 0.1,
                                                                     .cloud_seconds = 0.1,
                                                                     .round_trip_seconds = 0.01,
                                                                     .odds = 0.8})
                                                              .token_seconds);
  for (int i = 0; i < 500; ++i) {
    meter.OnGuess(0.01);
    meter.OnBegun(0.02);
    meter.OnVerdict(true);
  }
  EXPECT_GT(meter.Odds(), 0.97);
  EXPECT_LT(meter.Plan(0.05, 0.1, 0.01, 0).token_seconds, 0.05);
  for (int i = 0; i < 500; ++i) meter.OnVerdict(i % 4 == 0);
  EXPECT_NEAR(meter.Odds(), 0.25, 0.1);
  EXPECT_GT(meter.Plan(0.05, 0.1, 0.01, 0).token_seconds, 0.08);
}

TEST(DraftPace, NothingIsExpectedOfGuessesThatTheCloudDoesNotTake) {
  DraftFacts facts = kLoaded;
  double before = PlanDraft(facts).token_seconds;
  for (const double taken : {0.5, 0.1}) {
    facts.taken = taken;
    const double with = PlanDraft(facts).token_seconds;
    EXPECT_GT(with, before);
    before = with;
  }
  facts.taken = 0;
  EXPECT_EQ(PlanDraft(facts).token_seconds, 0.1);
  EXPECT_GT(PlanDraft(facts).ahead, 0u) << "a cloud that takes none may take some later";
}

constexpr double kOwn = 0.02, kCloud = 0.1, kRoundTrip = 0.01;
constexpr Nanos kMinute = 60'000'000'000;

// An answer of 200 tokens as the facts say, except that the cloud has taken the share `taken` of
// the guesses in time, and that all of it took `longer` times as long.
DraftedAnswer AnAnswer(const DraftMeter& meter, double taken, double longer, Nanos now,
                       std::size_t tokens = 200) {
  const DraftPlan plan = meter.Plan(kOwn, kCloud, kRoundTrip, now);
  const auto all = static_cast<double>(tokens);
  const double right = taken * plan.in_time * all;
  return {.tokens = tokens,
          .seconds = longer * (right * plan.drafted_seconds + (all - right) * kCloud),
          .expected_seconds = all * plan.token_seconds,
          .cloud_seconds = all * kCloud,
          .drafted_seconds = all * plan.drafted_seconds,
          .judged = all,
          .in_time = all * plan.in_time,
          .right = right};
}

double TokenSeconds(const DraftMeter& meter, Nanos now) {
  return meter.Plan(kOwn, kCloud, kRoundTrip, now).token_seconds;
}

TEST(DraftMeter, WhatAnswersReallyTookCorrectsThePlan) {
  DraftMeter meter;
  const double planned = TokenSeconds(meter, 0);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(meter.OnAnswer(AnAnswer(meter, 1, 2, 0), 0));
  EXPECT_NEAR(TokenSeconds(meter, 0), 2 * planned, 1e-9);
  EXPECT_NEAR(meter.Taken(0), 1, 1e-9) << "the guesses were taken";
  EXPECT_EQ(meter.Plan(0.2, 0.1, 0.01, 0).token_seconds, 0.1) << "there is no draft to correct";
}

TEST(DraftMeter, AnAnswerWhoseGuessesAreNotTakenTeachesThatAtOnceAndNothingElse) {
  DraftMeter meter;
  EXPECT_LT(TokenSeconds(meter, 0), 0.7 * kCloud);
  EXPECT_TRUE(meter.OnAnswer(AnAnswer(meter, 0, 1, 0), 0));
  EXPECT_GT(TokenSeconds(meter, 0), 0.9 * kCloud);
  EXPECT_LE(TokenSeconds(meter, 0), kCloud) << "such drafts cost nothing";
  EXPECT_NEAR(meter.Factor(0), 1, 1e-9) << "it took what the cloud alone takes";
}

TEST(DraftMeter, NothingIsLearnedOfAFewTokens) {
  DraftMeter meter;
  EXPECT_FALSE(meter.OnAnswer(AnAnswer(meter, 0, 9, 0, 15), 0));
  EXPECT_FALSE(meter.OnAnswer({}, 0));
  EXPECT_EQ(meter.Factor(0), 1);
  EXPECT_EQ(meter.Taken(0), 1);
  DraftedAnswer moment = AnAnswer(meter, 1, 9, 0, 20);
  moment.cloud_seconds = 0.02;
  EXPECT_TRUE(meter.OnAnswer(moment, 0)) << "the cloud took its guesses";
  EXPECT_EQ(meter.Factor(0), 1) << "and its tokens have come when they came";
}

TEST(DraftMeter, NoTokenIsPlannedSoonerThanGuessesComeWhateverAnAnswerTook) {
  DraftMeter meter;
  for (int i = 0; i < 50; ++i) (void)meter.OnAnswer(AnAnswer(meter, 1, 0.1, 0), 0);
  const DraftPlan plan = meter.Plan(kOwn, kCloud, kRoundTrip, 0);
  EXPECT_NEAR(plan.token_seconds, plan.in_time * kOwn + (1 - plan.in_time) * kCloud, 1e-9);
}

// How auto takes it, where the end itself takes as long as is said.
bool Drafts(const DraftMeter& meter, Nanos now, double end_token_seconds = 1) {
  PlaceCosts cloud{.read_seconds = 0.001, .token_seconds = kCloud};
  PlaceCosts with = cloud;
  with.token_seconds = TokenSeconds(meter, now);
  const PlaceFacts facts{
      .end = PlaceCosts{.read_seconds = 0.001, .token_seconds = end_token_seconds},
      .cloud = cloud,
      .drafts = with};
  return MakePlaceRule("auto").value()->Choose({.read = 1, .tokens = 200}, facts, {}).drafts;
}

// How many answers have drafts before another way is taken.
int AnswersUntilLeft(DraftMeter& meter, double taken, double longer, Nanos now, double end) {
  int answers = 0;
  while (Drafts(meter, now, end) && answers < 50) {
    (void)meter.OnAnswer(AnAnswer(meter, taken, longer, now), now);
    ++answers;
  }
  return answers;
}

TEST(DraftMeter, AnEndWhoseDraftsTakeThreeTimesAsLongAsPredictedStopsChoosingThemSoon) {
  DraftMeter meter;
  const int beside_the_cloud = AnswersUntilLeft(meter, 1, 3, 0, 1);
  EXPECT_GE(beside_the_cloud, 1);
  EXPECT_LE(beside_the_cloud, 3);
  DraftMeter other;
  EXPECT_EQ(AnswersUntilLeft(other, 0, 1, 0, /*end=*/0.08), 1)
      << "an end that is slower than drafts seem, and faster than they are";
}

TEST(DraftMeter, AnEndTriesDraftsAgainAndStaysWithThemWhereTheyGainNow) {
  for (const double longer : {1.0, 3.0}) {
    DraftMeter meter;
    EXPECT_GE(AnswersUntilLeft(meter, 0, longer, 0, 1), 1);
    Nanos now = 0;
    while (!Drafts(meter, now) && now < 60 * kMinute) now += kMinute;
    EXPECT_GE(now, 2 * kMinute) << "it is no use to try again at once";
    EXPECT_LE(now, 20 * kMinute);
    DraftMeter still_bad = meter;
    EXPECT_LE(AnswersUntilLeft(still_bad, 0, longer, now, 1), 2) << "a try is short";
    for (int i = 0; i < 50; ++i) {
      (void)meter.OnAnswer(AnAnswer(meter, 1, 1, now), now);
      ASSERT_TRUE(Drafts(meter, now)) << "answer " << i;
    }
  }
}

TEST(DraftTally, SumsWhatTokensTookBesideWhatWasPlannedOfThem) {
  const DraftPlan plan{.ahead = 4,
                       .token_seconds = 0.05,
                       .in_time = 0.5,
                       .drafted_seconds = 0.02,
                       .cloud_seconds = 0.1};
  DraftTally tally;
  tally.OnTold(plan, 7'000'000'000);  // it has waited for its prompt
  tally.OnOffer();
  for (int i = 1; i <= 20; ++i) tally.OnTold(plan, 7'000'000'000 + i * 90'000'000L);
  const DraftedAnswer all = tally.Sum();
  EXPECT_EQ(all.tokens, 20u);
  EXPECT_NEAR(all.seconds, 1.8, 1e-9);
  EXPECT_NEAR(all.expected_seconds, 1, 1e-9);
  EXPECT_NEAR(all.cloud_seconds, 2, 1e-9);
  EXPECT_NEAR(all.drafted_seconds, 0.4, 1e-9);
  EXPECT_NEAR(all.in_time, 10, 1e-9);
  EXPECT_EQ(all.right, 0) << "the cloud has said nothing of any guess";
}

TEST(DraftTally, WhatTheCloudTookOfOffersUnderWayNobodyKnows) {
  const DraftPlan plan{.ahead = 4, .token_seconds = 0.05, .in_time = 0.5, .cloud_seconds = 0.1};
  DraftTally tally;
  for (int i = 0; i <= 10; ++i) tally.OnTold(plan, i);
  tally.OnOffer();
  tally.OnVerdict(4);
  tally.OnOffer();
  for (int i = 0; i < 30; ++i) tally.OnTold(plan, i);
  EXPECT_EQ(tally.Sum().right, 4);
  EXPECT_EQ(tally.Sum().judged, 10);
  EXPECT_EQ(tally.Sum().in_time, 5);
  tally.OnVerdict(std::nullopt);
  EXPECT_EQ(tally.Sum().judged, 40) << "the offer was lost";
}

TEST(DraftTally, WhereNothingIsExpectedOfDraftsNothingIsLearnedOfThem) {
  DraftTally tally;
  for (int i = 0; i < 50; ++i) {
    tally.OnTold({.ahead = 8, .token_seconds = 0.1, .cloud_seconds = 0.1}, i * 1'000'000'000L);
  }
  EXPECT_EQ(tally.Sum().tokens, 0u);
  DraftMeter meter;
  EXPECT_FALSE(meter.OnAnswer(tally.Sum(), 0));
}

}  // namespace
}  // namespace troupe
