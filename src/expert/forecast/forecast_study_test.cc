#include "expert/forecast/forecast_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;

constexpr ForecastPlace kGate = ForecastPlace::kGateBefore;

GateScores Rows(const std::vector<float>& scores) { return {.experts = 4, .scores = scores}; }

TEST(ForecastStudyTest, CountsWhatWasPredictedOfWhatWasChosen) {
  ForecastStudy study(2, 2);
  // Chosen 0 and 1; predicted 0 and 3, and 3 / 4 of a row of four leaves nobody above it but the
  // best.
  const std::vector<float> said = {4, 3, 2, 1}, forecast = {9, 1, 2, 3};
  const std::vector<float> stream = {1, 0};
  study.Add(1, kGate, stream, stream, Rows(forecast), Rows(said));
  EXPECT_EQ(study.Of(1, kGate).tokens, 1u);
  EXPECT_DOUBLE_EQ(study.Of(1, kGate).expected, 0.5);
  EXPECT_DOUBLE_EQ(study.Of(1, kGate).guessed, 0.5);
  study.Add(1, kGate, stream, stream, Rows(said), Rows(said));
  EXPECT_DOUBLE_EQ(study.Of(1, kGate).expected, 0.75);  // the mean of both tokens
  EXPECT_EQ(study.Of(0, kGate).tokens, 0u);
  EXPECT_EQ(study.Of(1, ForecastPlace::kOwnAttention).tokens, 0u);
}

TEST(ForecastStudyTest, SimilarityIsTheCosineOfTheTwoInputs) {
  ForecastStudy study(1, 1);
  const std::vector<float> two_said(8, 0.0f);
  const std::vector<float> early = {1, 0, 3, 4}, own = {0, 5, 6, 8};  // two rows of two
  study.Add(0, kGate, early, own, Rows(two_said), Rows(two_said));
  EXPECT_DOUBLE_EQ(study.Of(0, kGate).similarity, (0.0 + 1.0) / 2);
}

TEST(ForecastStudyTest, TheTopOfARowIsBestFirstAndTheEarlierOfEquals) {
  const std::vector<float> row = {1, 3, 2, 3};
  EXPECT_THAT(TopOf(row, 3), ElementsAre(1, 3, 2));
  EXPECT_EQ(TopOf(row, 9).size(), 4u);
}

}  // namespace
}  // namespace troupe
