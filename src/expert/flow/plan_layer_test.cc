#include "expert/flow/plan_layer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "expert/flow/lane_balance.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::vector<LaneMiss> Misses(std::uint32_t count) {
  std::vector<LaneMiss> misses;
  for (std::uint32_t e = 0; e < count; ++e) {
    misses.push_back({.expert = e, .rows = 1 + e % 3, .weight = 0.1 * e});
  }
  return misses;
}

std::uint32_t Elsewhere(const MissPlan& plan) {
  return static_cast<std::uint32_t>(
      std::ranges::count(plan.decisions, MissAnswer::kElsewhere, &MissDecision::answer));
}

TEST(PlanLayer, IsTheBalanceOfTwoLanesWhereComputingTakesNoTime) {
  Rng rng(TestSeed());
  LayerPlanner planner;
  for (int round = 0; round < 500; ++round) {
    const auto count = static_cast<std::uint32_t>(rng.Below(16));
    const LaneCosts costs{static_cast<double>(1 + rng.Below(7)),
                          static_cast<double>(1 + rng.Below(7))};
    const MissPlan& plan = planner.PlanLayer(
        Misses(count), {.load_seconds = costs.load_seconds, .other_seconds = costs.other_seconds});
    const LaneSplit split = BalanceLanes(count, costs);
    EXPECT_NEAR(plan.seconds, split.Seconds(), 1e-9);
    EXPECT_EQ(Elsewhere(plan), split.other);
  }
}

TEST(PlanLayer, TheBestAreLoadedAndTheOthersComputedWhereTheyLie) {
  LayerPlanner planner;
  const MissPlan& plan = planner.PlanLayer(Misses(4), {.load_seconds = 2, .other_seconds = 2});
  ASSERT_EQ(plan.decisions.size(), 4u);
  EXPECT_EQ(plan.decisions[0].expert, 3u);
  EXPECT_EQ(plan.decisions[1].answer, MissAnswer::kLoad);
  EXPECT_EQ(plan.decisions[2].answer, MissAnswer::kElsewhere);
  EXPECT_EQ(plan.decisions[3].answer, MissAnswer::kElsewhere);
  EXPECT_EQ(plan.seconds, 4);
}

// Three loads of 2 s, computed in 1 s each while the next one is loaded, end after 7 s, which the
// second lane's 8 s for one are no help to. A lane that computed before it loads on would take 9.
TEST(PlanLayer, ComputingOverlapsWithLoading) {
  LayerPlanner planner;
  const TwoLanes lanes{.load_seconds = 2, .local = {.first_row_seconds = 1}, .other_seconds = 8};
  const MissPlan& plan = planner.PlanLayer(Misses(3), lanes);
  EXPECT_EQ(Elsewhere(plan), 0u);
  EXPECT_EQ(plan.seconds, 7);
  EXPECT_EQ(BalanceLanes(3, {.load_seconds = 3, .other_seconds = 8}).other, 1u);
}

TEST(PlanLayer, LoadsThatAreAheadAndLatencyMoveWorkToTheSecondLane) {
  LayerPlanner planner;
  TwoLanes lanes{.load_seconds = 2, .other_seconds = 3};
  EXPECT_EQ(Elsewhere(planner.PlanLayer(Misses(2), lanes)), 1u);
  EXPECT_EQ(planner.PlanLayer(Misses(2), lanes).seconds, 3);
  lanes.queued_seconds = 4;
  EXPECT_EQ(planner.PlanLayer(Misses(2), lanes).seconds, 6);
  lanes.latency_seconds = 2;
  EXPECT_EQ(Elsewhere(planner.PlanLayer(Misses(2), lanes)), 2u);
}

TEST(PlanLayer, ASecondLaneThatCostsNothingTakesEverything) {
  LayerPlanner planner;
  EXPECT_EQ(Elsewhere(planner.PlanLayer(Misses(5), {.load_seconds = 1})), 5u);
}

TEST(PlanLayer, LoadsThatCostNothingAreAllMade) {
  LayerPlanner planner;
  EXPECT_EQ(Elsewhere(planner.PlanLayer(Misses(5), {.other_seconds = 1})), 0u);
}

}  // namespace
}  // namespace troupe
