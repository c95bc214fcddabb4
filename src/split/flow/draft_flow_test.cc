#include "split/flow/draft_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/rng.h"
#include "split/flow/draft_pace.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Step = DraftFlow::Step;

constexpr std::size_t kMost = 1000;

// Of a flow that was just begun behind the answer's first token, 1.
std::uint64_t Begin(DraftFlow& flow, std::size_t ahead = 4) {
  const Step step = flow.SetAhead(ahead, 0);
  EXPECT_TRUE(step.start.has_value());
  return step.start->run;
}

TEST(DraftFlow, GuessesBehindWhatWasToldAndOffersEachGuess) {
  DraftFlow flow({1}, kMost);
  const Step begun = flow.SetAhead(4, 0);
  EXPECT_EQ(begun.start, (DraftFlow::Start{.run = 1, .begun = {1}, .tokens = 4}));
  EXPECT_EQ(flow.OnGuess(1, 2, 0).offer, (DraftFlow::Offer{.from = 1, .tokens = {2}}));
  EXPECT_EQ(flow.OnGuess(1, 3, 0).offer, (DraftFlow::Offer{.from = 1, .tokens = {2, 3}}));
  EXPECT_EQ(flow.OnTold(2, 0), (Step{.verdicts = {true}}));
  EXPECT_EQ(flow.OnGuess(1, 4, 0).offer, (DraftFlow::Offer{.from = 2, .tokens = {3, 4}}));
}

TEST(DraftFlow, AWrongGuessBeginsAnewBehindTheCloudsToken) {
  DraftFlow flow({1}, kMost);
  const std::uint64_t run = Begin(flow);
  (void)flow.OnGuess(run, 2, 0);
  (void)flow.OnGuess(run, 3, 0);
  const Step step = flow.OnTold(9, 0);
  EXPECT_THAT(step.verdicts, ElementsAre(false)) << "the second guess was made behind a wrong one";
  EXPECT_TRUE(step.stop);
  EXPECT_EQ(step.start, (DraftFlow::Start{.run = 2, .begun = {1, 9}, .tokens = 4}));
  EXPECT_EQ(flow.OnGuess(run, 4, 0), Step()) << "of the run that was stopped";
}

TEST(DraftFlow, ARunGoesOnBehindItsGuessesOnceHalfOfTheLeadIsTold) {
  DraftFlow flow({1}, kMost);
  const std::uint64_t run = Begin(flow);
  for (const TokenId token : {2, 3, 4, 5}) (void)flow.OnGuess(run, token, 0);
  EXPECT_EQ(flow.OnRunEnd(run, FinishReason::kLength, 0).start, std::nullopt);
  EXPECT_EQ(flow.OnTold(2, 0).start, std::nullopt);
  EXPECT_EQ(flow.OnTold(3, 0).start,
            (DraftFlow::Start{.run = 2, .begun = {1, 2, 3, 4, 5}, .tokens = 2}));
}

TEST(DraftFlow, ARunThatIsLateGoesOnUntilItIsTooFarBehind) {
  DraftFlow flow({1}, kMost, {.patience = 2});
  const std::uint64_t run = Begin(flow);
  EXPECT_EQ(flow.OnTold(2, 0), Step());
  EXPECT_EQ(flow.OnTold(3, 0), Step());
  EXPECT_EQ(flow.OnGuess(run, 2, 0), (Step{.verdicts = {true}})) << "late, and right";
  EXPECT_EQ(flow.OnTold(4, 0), Step());
  const Step step = flow.OnTold(5, 0);
  EXPECT_TRUE(step.stop);
  EXPECT_EQ(step.start->begun, (std::vector<TokenId>{1, 2, 3, 4, 5}));
}

TEST(DraftFlow, ARunThatHasGivenNoGuessYetIsWaitedFor) {
  DraftFlow flow({1}, kMost, {.patience = 2});
  const std::uint64_t run = Begin(flow);
  for (TokenId token = 2; token < 12; ++token) EXPECT_EQ(flow.OnTold(token, 0), Step());
  const Step step = flow.OnGuess(run, 2, 0);
  EXPECT_TRUE(step.stop);
  EXPECT_EQ(step.start->begun.size(), 11u);
}

TEST(DraftFlow, ALateGuessThatIsWrongBeginsAnew) {
  DraftFlow flow({1}, kMost);
  const std::uint64_t run = Begin(flow);
  (void)flow.OnTold(2, 0);
  const Step step = flow.OnGuess(run, 7, 0);
  EXPECT_THAT(step.verdicts, ElementsAre(false));
  EXPECT_TRUE(step.stop);
  EXPECT_EQ(step.start->begun, (std::vector<TokenId>{1, 2}));
}

TEST(DraftFlow, NoMoreOffersAreUnderWayThanMayBe) {
  DraftFlow flow({1}, kMost, {.most_offers = 2});
  const std::uint64_t run = Begin(flow, 8);
  flow.SetOfferPause(10);
  EXPECT_TRUE(flow.OnGuess(run, 2, 0).offer);
  EXPECT_FALSE(flow.OnGuess(run, 3, 5).offer) << "too soon after the last one";
  EXPECT_EQ(flow.OnGuess(run, 4, 10).offer->tokens, (std::vector<TokenId>{2, 3, 4}));
  EXPECT_FALSE(flow.OnGuess(run, 5, 30).offer) << "two are under way";
  EXPECT_EQ(flow.OnOfferOver(40).offer->tokens, (std::vector<TokenId>{2, 3, 4, 5}));
  EXPECT_FALSE(flow.OnOfferOver(50).offer) << "there is nothing new";
}

TEST(DraftFlow, ADraftThatThinksTheAnswerIsOverWaitsForTheCloud) {
  DraftFlow flow({1}, kMost);
  const std::uint64_t run = Begin(flow);
  (void)flow.OnGuess(run, 2, 0);
  EXPECT_EQ(flow.OnRunEnd(run, FinishReason::kEndToken, 0), Step());
  EXPECT_EQ(flow.OnTime(0), Step());
  EXPECT_FALSE(flow.runs());
  (void)flow.OnTold(2, 0);
  (void)flow.OnTold(3, 0);
  EXPECT_TRUE(flow.runs()) << "it was not over";
}

TEST(DraftFlow, NothingIsGuessedBeyondTheAnswersLength) {
  DraftFlow flow({1}, 3);
  EXPECT_EQ(flow.SetAhead(4, 0).start->tokens, 2u);
  (void)flow.OnGuess(1, 2, 0);
  (void)flow.OnGuess(1, 3, 0);
  EXPECT_EQ(flow.OnRunEnd(1, FinishReason::kLength, 0).start, std::nullopt);
  EXPECT_EQ(flow.OnTold(2, 0).start, std::nullopt);
  EXPECT_EQ(flow.OnTold(3, 0).start, std::nullopt);
}

TEST(DraftFlow, ARunThatFailsIsTriedAgainAfterAPause) {
  DraftFlow flow({1}, kMost, {.pause = 100});
  const std::uint64_t run = Begin(flow);
  EXPECT_EQ(flow.OnRunFailure(run, 50), Step());
  EXPECT_EQ(flow.OnTime(149).start, std::nullopt);
  EXPECT_TRUE(flow.OnTime(150).start);
}

TEST(DraftFlow, WithNoLeadWantedItStopsAndForgets) {
  DraftFlow flow({1}, kMost);
  const std::uint64_t run = Begin(flow);
  (void)flow.OnGuess(run, 2, 0);
  EXPECT_TRUE(flow.SetAhead(0, 0).stop);
  EXPECT_THAT(flow.guesses(), IsEmpty());
  EXPECT_EQ(flow.OnTold(9, 0), Step());
  EXPECT_EQ(flow.SetAhead(2, 0).start->begun, (std::vector<TokenId>{1, 9}));
}

// An end, a link and a cloud on a virtual clock. The end guesses the text right by chance; the
// cloud takes the same time for each pass, which checks the last offer that has come before it.
class Simulated {
 public:
  Simulated(const DraftFacts& facts, std::uint64_t seed) : facts_(facts), rng_(seed) {}

  // Seconds a token.
  double Run(std::size_t tokens) {
    Do(flow_.SetAhead(PlanDraft(facts_).ahead, 0));
    flow_.SetOfferPause(Time(facts_.round_trip_seconds / 4));
    Pass();
    while (chosen_ < tokens) {
      auto next = events_.extract(events_.begin());
      now_ = next.key();
      next.mapped()();
      EXPECT_LE(flow_.guesses().size(), PlanDraft(facts_).ahead + 1);
    }
    return static_cast<double>(now_) * 1e-9 / static_cast<double>(tokens);
  }

 private:
  static Nanos Time(double seconds) { return static_cast<Nanos>(seconds * 1e9); }
  void At(Nanos after, std::function<void()> event) {
    events_.emplace(now_ + after, std::move(event));
  }
  static TokenId Truth(std::size_t at) { return static_cast<TokenId>(at * 7 % 1000); }
  Nanos Half() const { return Time(facts_.round_trip_seconds / 2); }

  void Pass() {
    std::size_t next = chosen_ + 1;
    if (offer_.from <= chosen_) {
      for (std::size_t i = chosen_ - offer_.from; i < offer_.tokens.size(); ++i) {
        if (offer_.tokens[i] != Truth(offer_.from + i)) break;
        ++next;
      }
    }
    At(Time(facts_.cloud_seconds), [this, next] {
      for (; chosen_ < next; ++chosen_) {
        At(Half(), [this, at = chosen_] { Do(flow_.OnTold(Truth(at), now_)); });
      }
      Pass();
    });
  }

  void Do(Step step) {
    if (step.stop) run_ = 0;
    if (step.start) {
      run_ = step.start->run;
      position_ = step.start->begun.size(), left_ = step.start->tokens;
      // What was begun with wrong guesses goes on wrong.
      is_right_ = true;
      for (std::size_t i = 0; i < position_; ++i) {
        is_right_ = is_right_ && step.start->begun[i] == Truth(i);
      }
      At(Time(facts_.begin_seconds), [this, run = run_] { Guess(run); });
    }
    if (step.offer) {
      At(Half(), [this, offer = *step.offer] {
        if (offer.from + offer.tokens.size() >= offer_.from) offer_ = offer;
        At(Half(), [this] { Do(flow_.OnOfferOver(now_)); });
      });
    }
  }
  void Guess(std::uint64_t run) {
    if (run != run_) return;
    is_right_ = is_right_ && rng_.Uniform() < facts_.odds;
    const TokenId token = is_right_ ? Truth(position_) : -1;
    ++position_, --left_;
    Do(flow_.OnGuess(run, token, now_));
    if (run != run_) return;
    if (left_ == 0) return Do(flow_.OnRunEnd(run, FinishReason::kLength, now_));
    At(Time(facts_.guess_seconds), [this, run] { Guess(run); });
  }

  const DraftFacts facts_;
  Rng rng_;
  DraftFlow flow_{{}, 1'000'000};
  std::multimap<Nanos, std::function<void()>> events_;
  Nanos now_ = 0;
  std::size_t chosen_ = 0;
  DraftFlow::Offer offer_;
  std::uint64_t run_ = 0;
  std::size_t position_ = 0, left_ = 0;
  bool is_right_ = true;
};

// The pace takes time as even: it leaves out that an offer waits for the next pass.
TEST(DraftFlow, SimulatedTokensComeAboutAsFastAsThePaceExpects) {
  const std::uint64_t seed = TestSeed();
  for (const double guess : {0.04, 0.06}) {
    for (const double odds : {0.6, 0.9, 0.97}) {
      for (const double round_trip : {0.005, 0.02, 0.08}) {
        const DraftFacts facts{.guess_seconds = guess,
                               .begin_seconds = guess,
                               .cloud_seconds = 0.1,
                               .round_trip_seconds = round_trip,
                               .odds = odds};
        const double expected = PlanDraft(facts).token_seconds;
        const double seen = Simulated(facts, seed).Run(4000);
        EXPECT_NEAR(seen / expected, 1, 0.1)
            << "guess " << guess << " odds " << odds << " round trip " << round_trip;
        EXPECT_LT(seen, 0.1005) << "a draft is never in the cloud's way";
      }
    }
  }
}

}  // namespace
}  // namespace troupe
