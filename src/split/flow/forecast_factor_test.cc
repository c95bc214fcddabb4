#include "split/flow/forecast_factor.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kASecond = 1'000'000'000;

// Answers that are predicted to take 0.2 s times the factor, one after the other.
void Take(ForecastFactor& factor, double seconds, int answers) {
  for (int i = 0; i < answers; ++i) {
    factor.OnAnswer(0.2 * factor.At(0), factor.At(0), seconds, 0);
  }
}

TEST(ForecastFactor, FollowsWhatAnswersTakeOfWhatWasPredicted) {
  ForecastFactor factor;
  EXPECT_EQ(factor.At(0), 1);
  Take(factor, 0.5, 60);
  EXPECT_NEAR(factor.At(0), 2.5, 0.05);
  Take(factor, 0.1, 60);
  EXPECT_NEAR(factor.At(0), 0.5, 0.05);
}

TEST(ForecastFactor, AnswersThatWerePredictedTogetherSayTheSameOnce) {
  ForecastFactor factor;
  for (int i = 0; i < 60; ++i) factor.OnAnswer(0.2, /*factor=*/1, 0.3, 0);
  EXPECT_NEAR(factor.At(0), 1.5, 0.01);
}

TEST(ForecastFactor, OneAnswerThatTookForEverIsHardlyBelieved) {
  ForecastFactor factor;
  factor.OnAnswer(0.001, 1, 1000, 0);
  EXPECT_LT(factor.At(0), 9) << "and not a million";
  for (int i = 0; i < 100; ++i) factor.OnAnswer(0.001, 1, 1000, 0);
  EXPECT_LE(factor.At(0), 16);
  const double before = factor.At(0);
  factor.OnAnswer(0, 1, 0.1, 0);
  EXPECT_EQ(factor.At(0), before) << "nothing was predicted of it";
}

TEST(ForecastFactor, IsForgottenWhereNothingIsMeasured) {
  ForecastFactor factor;
  Take(factor, 0.8, 100);
  EXPECT_NEAR(factor.At(0), 4, 0.01);
  EXPECT_NEAR(factor.At(300 * kASecond), 2, 0.1);
  EXPECT_NEAR(factor.At(3000 * kASecond), 1, 0.01);
}

}  // namespace
}  // namespace troupe
