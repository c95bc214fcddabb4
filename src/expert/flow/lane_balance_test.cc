#include "expert/flow/lane_balance.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(LaneBalanceTest, WalksFromBothEndsAsPrinted) {
  // load 3, other 2: L(3,0) O(3,2) O(3,4) L(6,4) O(6,6) L(9,6)
  const LaneSplit split = BalanceLanes(6, {3, 2}, LaneRule::kEndsFirst);
  EXPECT_EQ(split, (LaneSplit{3, 3, 9, 6}));
}

TEST(LaneBalanceTest, AsPrintedLoadsASingleExpertWhateverThatCosts) {
  EXPECT_EQ(BalanceLanes(1, {100, 1}, LaneRule::kEndsFirst), (LaneSplit{1, 0, 100, 0}));
  EXPECT_EQ(BalanceLanes(1, {100, 1}), (LaneSplit{0, 1, 0, 1}));
}

TEST(LaneBalanceTest, LoadsOnTies) {
  EXPECT_EQ(BalanceLanes(1, {5, 5}), (LaneSplit{1, 0, 5, 0}));
  EXPECT_EQ(BalanceLanes(0, {5, 5}), LaneSplit{});
}

TEST(LaneBalanceTest, IsAsShortAsAnySplitAndThePrintedRuleWithinOneExpertOfIt) {
  Rng rng(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    const auto experts = static_cast<std::uint32_t>(rng.Below(20));
    const LaneCosts costs{rng.Uniform() * 10, rng.Uniform() * 10};
    double best = 1e9;
    for (std::uint32_t load = 0; load <= experts; ++load) {
      best = std::min(best,
                      std::max(load * costs.load_seconds, (experts - load) * costs.other_seconds));
    }
    const LaneSplit split = BalanceLanes(experts, costs);
    EXPECT_EQ(split.load + split.other, experts);
    EXPECT_NEAR(split.Seconds(), best, 1e-9);
    const LaneSplit printed = BalanceLanes(experts, costs, LaneRule::kEndsFirst);
    EXPECT_EQ(printed.load + printed.other, experts);
    EXPECT_LE(printed.Seconds(), best + std::max(costs.load_seconds, costs.other_seconds) + 1e-9);
  }
}

TEST(WindowMeanTest, IsOfTheLastValuesOnly) {
  WindowMean mean(3);
  EXPECT_FALSE(mean.Mean().has_value());
  mean.Add(9);
  EXPECT_EQ(mean.Mean(), 9);
  for (const double value : {1.0, 2.0, 6.0}) mean.Add(value);
  EXPECT_EQ(mean.Mean(), 3);
}

}  // namespace
}  // namespace troupe
