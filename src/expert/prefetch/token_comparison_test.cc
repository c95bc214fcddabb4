#include "expert/prefetch/token_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using Kind = TokenComparison::Kind;

// Of which a load adds 0.4 ms, as most of it is hidden, to work that varies by up to 1 ms.
double Seconds(Rng& rng, double loads) {
  return 10e-3 + loads * 0.4e-3 + static_cast<double>(rng.Below(1000)) * 1e-6;
}

TEST(TokenComparisonTest, SaysNothingOfTooFewTokens) {
  TokenComparison comparison;
  EXPECT_EQ(comparison.Compare().seconds, 0);
  comparison.Add(Kind::kWith, 1, 2e-3);
  comparison.Add(Kind::kWith, 2, 3e-3);
  comparison.Add(Kind::kWithout, 1, 1e-3);
  EXPECT_EQ(comparison.Compare().seconds, 0);
}

TEST(TokenComparisonTest, WithoutLoadsItComparesMeans) {
  TokenComparison comparison;
  for (const double seconds : {2e-3, 3e-3, 4e-3}) comparison.Add(Kind::kWith, 0, seconds);
  for (const double seconds : {1e-3, 2e-3}) comparison.Add(Kind::kWithout, 0, seconds);
  EXPECT_NEAR(comparison.Compare().seconds, 1.5e-3, 1e-12);
  // (2 + 0.5) ms^2 left over three degrees of freedom, over three and two tokens.
  EXPECT_NEAR(comparison.Compare().error, 1e-3 * std::sqrt(2.5 / 3 * (1.0 / 3 + 1.0 / 2)), 1e-12);
}

TEST(TokenComparisonTest, WhatLoadsExplainIsNoDifferenceHoweverMuchOfALoadIsHidden) {
  TokenComparison comparison;
  for (const double loads : {3, 9, 15}) comparison.Add(Kind::kWith, loads, 5e-3 + loads * 0.4e-3);
  for (const double loads : {20, 22, 30}) {
    comparison.Add(Kind::kWithout, loads, 5e-3 + loads * 0.4e-3);
  }
  EXPECT_NEAR(comparison.Compare().seconds, 0, 1e-12);
  EXPECT_NEAR(comparison.Compare().error, 0, 1e-9);
}

TEST(TokenComparisonTest, FindsADifferenceBehindMissesThatDifferFarMore) {
  TokenComparison comparison;
  Rng rng(TestSeed());
  for (int t = 0; t < 200; ++t) {
    const double loads = static_cast<double>(rng.Below(30));
    const bool with = t % 4 != 0;
    comparison.Add(with ? Kind::kWith : Kind::kWithout, loads,
                   Seconds(rng, loads) + (with ? 0.5e-3 : 0));
  }
  const TokenComparison::Difference difference = comparison.Compare();
  EXPECT_NEAR(difference.seconds, 0.5e-3, 4 * difference.error);
  EXPECT_LT(difference.error, 0.1e-3);
}

// Of many trials, the share in which chance alone is larger than two of the errors that are stated,
// after `rounds` in which what was seen before has aged.
double OutsideTwoErrors(int rounds) {
  Rng rng(TestSeed());
  int outside = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    TokenComparison comparison;
    for (int round = 0; round < rounds; ++round) {
      if (round > 0) comparison.Age();
      for (int t = 0; t < 40; ++t) {
        const double loads = static_cast<double>(rng.Below(30));
        comparison.Add(t % 4 == 0 ? Kind::kWithout : Kind::kWith, loads, Seconds(rng, loads));
      }
    }
    const TokenComparison::Difference difference = comparison.Compare();
    outside += std::abs(difference.seconds) > 2 * difference.error ? 1 : 0;
  }
  return static_cast<double>(outside) / kTrials;
}

TEST(TokenComparisonTest, ChanceIsAsLargeAsTheErrorSaysAlsoAfterAgeing) {
  for (const int rounds : {1, 2, 8}) {  // of a normal distribution it is 4.6 %
    EXPECT_GT(OutsideTwoErrors(rounds), 0.03) << rounds;
    EXPECT_LT(OutsideTwoErrors(rounds), 0.07) << rounds;
  }
}

TEST(TokenComparisonTest, SaysNothingWhereLoadsMayExplainAllOfIt) {
  TokenComparison comparison;
  for (const double seconds : {2e-3, 2.1e-3, 2.2e-3}) comparison.Add(Kind::kWith, 3, seconds);
  for (const double seconds : {4e-3, 4.1e-3, 4.2e-3}) comparison.Add(Kind::kWithout, 9, seconds);
  EXPECT_EQ(comparison.Compare().seconds, 0);
}

TEST(TokenComparisonTest, OldTokensCountForLessWithTime) {
  TokenComparison comparison;
  for (int t = 0; t < 100; ++t) {
    comparison.Add(Kind::kWith, t % 7, 5e-3);
    comparison.Add(Kind::kWithout, t % 7, 1e-3);
  }
  for (int round = 0; round < 10; ++round) {
    comparison.Age();
    for (int t = 0; t < 10; ++t) {
      comparison.Add(Kind::kWith, t % 7, 1e-3);
      comparison.Add(Kind::kWithout, t % 7, 5e-3);
    }
  }
  EXPECT_LT(comparison.Compare().seconds, -3e-3);
}

}  // namespace
}  // namespace troupe
