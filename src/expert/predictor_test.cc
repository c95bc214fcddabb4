#include "expert/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expert/activation_path.h"
#include "expert/cross_layer_gate.h"
#include "expert/oracle.h"
#include "expert/previous_token.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ExpertGrid kGrid{.layers = 3, .experts = 8};

std::vector<std::uint32_t> ExpertsOf(const std::vector<Guess>& guesses) {
  std::vector<std::uint32_t> experts;
  for (const Guess& guess : guesses) experts.push_back(guess.expert);
  return experts;
}

std::vector<std::uint32_t> ExpectedOf(const std::vector<Guess>& guesses) {
  std::vector<std::uint32_t> experts;
  for (const Guess& guess : guesses) {
    if (guess.expected) experts.push_back(guess.expert);
  }
  return experts;
}

TEST(CrossLayerGateTest, GuessesTheTopAndThenWhatExceedsThe75thPercentile) {
  CrossLayerGate gate(kGrid);
  const std::vector<float> scores = {.02f, .30f, .01f, .20f, .03f, .25f, .04f, .15f};
  const std::vector<std::uint32_t> top = {1, 5};
  // Sorted, place 6 of 8 is .25: only .30 exceeds it, and the top-k are guessed anyway.
  EXPECT_THAT(ExpertsOf(gate.Predict(1, {.tokens = 1, .scores = scores, .chosen = top})),
              ElementsAre(1, 5));
  const std::vector<std::uint32_t> one = {3};
  const auto guesses = gate.Predict(1, {.tokens = 1, .scores = scores, .chosen = one});
  EXPECT_THAT(ExpertsOf(guesses), ElementsAre(3, 1));
  EXPECT_THAT(ExpectedOf(guesses), ElementsAre(3));
}

TEST(CrossLayerGateTest, WithManyTokensThePopularComeFirst) {
  CrossLayerGate gate(kGrid);
  std::vector<float> scores(3 * 8, 0.05f);
  const std::vector<std::uint32_t> top = {4, 2, 4, 0, 4, 2};
  const auto guesses = gate.Predict(1, {.tokens = 3, .scores = scores, .chosen = top});
  EXPECT_THAT(ExpertsOf(guesses), ElementsAre(4, 2, 0));
}

TEST(ActivationPathTest, GuessesWhatFollowedBefore) {
  ActivationPath path(kGrid, 1);
  const std::vector<ExpertDemand> a = {{1, 1}}, b = {{2, 1}}, after_a = {{5, 1}},
                                  after_b = {{6, 1}};
  for (int i = 0; i < 3; ++i) {
    path.Chose(0, a);
    path.Chose(1, after_a);
    path.Chose(0, b);
    path.Chose(1, after_b);
  }
  path.Chose(0, a);
  path.Chose(1, after_b);  // once otherwise
  path.Chose(0, a);
  const auto guesses = path.Predict(1, {});
  EXPECT_THAT(ExpertsOf(guesses), ElementsAre(5, 6));
  EXPECT_THAT(ExpectedOf(guesses), ElementsAre(5));
}

TEST(ActivationPathTest, KnowsNothingAtFirstAndNothingForTheFirstLayer) {
  ActivationPath path(kGrid, 2);
  const std::vector<ExpertDemand> chosen = {{1, 1}};
  path.Chose(0, chosen);
  EXPECT_THAT(path.Predict(1, {}), IsEmpty());
  EXPECT_THAT(path.Predict(0, {}), IsEmpty());
}

TEST(PreviousTokenTest, GuessesTheLayersLastChoice) {
  PreviousToken previous(kGrid);
  const std::vector<ExpertDemand> first = {{1, 1}, {7, 3}}, second = {{2, 1}};
  previous.Chose(1, first);
  previous.Chose(2, second);
  EXPECT_THAT(ExpertsOf(previous.Predict(1, {})), ElementsAre(7, 1));
  EXPECT_THAT(ExpertsOf(previous.Predict(2, {})), ElementsAre(2));
  EXPECT_THAT(previous.Predict(0, {}), IsEmpty());
}

TEST(OracleTest, GuessesWhatWillBeChosen) {
  const std::vector<ExpertDemand> first = {{1, 1}}, second = {{2, 1}, {3, 4}};
  Oracle oracle({{.layer = 0, .chosen = first}, {.layer = 1, .chosen = second}});
  oracle.Chose(0, first);
  EXPECT_THAT(ExpertsOf(oracle.Predict(1, {})), ElementsAre(3, 2));
  EXPECT_THAT(oracle.Predict(2, {}), IsEmpty());
  oracle.Chose(1, second);
  EXPECT_THAT(oracle.Predict(2, {}), IsEmpty());
}

TEST(OracleDeathTest, StopsWhenTheRunIsNotTheRecordedOne) {
  const std::vector<ExpertDemand> first = {{1, 1}}, other = {{2, 1}};
  Oracle oracle({{.layer = 0, .chosen = first}});
  EXPECT_DEATH(oracle.Chose(0, other), "future_");
}

TEST(PredictorTest, EachNameMakesThePredictorOfThatName) {
  for (const std::string& name : PredictorNames()) {
    const auto made = MakePredictor(name, kGrid, 2);
    ASSERT_TRUE(made.ok());
    if (name == "none") {
      EXPECT_EQ(*made, nullptr);
    } else {
      EXPECT_EQ((*made)->name(), name);
    }
  }
  EXPECT_FALSE(MakePredictor("fortune", kGrid, 2).ok());
}

}  // namespace
}  // namespace troupe
