#include "split/flow/draft_pace.h"

#include <gtest/gtest.h>

#include "base/rng.h"
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
  EXPECT_EQ(PlanDraft(facts), (DraftPlan{.ahead = 0, .token_seconds = 0.1}));
  EXPECT_EQ(PlanDraft({}), DraftPlan());
}

TEST(DraftPace, ALongerRoundTripWantsALongerDraftAndGainsLess) {
  DraftFacts facts = kLoaded;
  facts.odds = 0.95;
  DraftPlan before = PlanDraft(facts);
  for (const double seconds : {0.04, 0.08, 0.16}) {
    facts.round_trip_seconds = seconds;
    const DraftPlan plan = PlanDraft(facts);
    EXPECT_GE(plan.ahead, before.ahead);
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
  EXPECT_EQ(meter.Plan(0.05, 0.1, 0.01).token_seconds, PlanDraft({.guess_seconds = 0.05,
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
  EXPECT_LT(meter.Plan(0.05, 0.1, 0.01).token_seconds, 0.05);
  for (int i = 0; i < 500; ++i) meter.OnVerdict(i % 4 == 0);
  EXPECT_NEAR(meter.Odds(), 0.25, 0.1);
  EXPECT_GT(meter.Plan(0.05, 0.1, 0.01).token_seconds, 0.08);
}

TEST(DraftMeter, WhatAnswersReallyTookCorrectsThePlan) {
  DraftMeter meter;
  const double planned = meter.Plan(0.02, 0.1, 0.01).token_seconds;
  for (int i = 0; i < 50; ++i) meter.OnAnswer(2 * planned, 0.02, 0.1, 0.01);
  EXPECT_NEAR(meter.Plan(0.02, 0.1, 0.01).token_seconds, 2 * planned, 1e-9);
  EXPECT_EQ(meter.Plan(0.2, 0.1, 0.01).token_seconds, 0.1) << "there is no draft to correct";
}

}  // namespace
}  // namespace troupe
