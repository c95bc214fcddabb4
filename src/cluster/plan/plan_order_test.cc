#include "cluster/plan/plan_order.h"

#include <gtest/gtest.h>

#include "cluster/plan/holding_steps.h"
#include "cluster/plan/planned_nodes_for_test.h"

namespace troupe {
namespace {

std::vector<std::uint8_t> Nothing(const PlanFacts& facts) {
  return std::vector<std::uint8_t>(facts.grid.Count());
}

TEST(PlanOrder, WhatIsUsedMostComesFirst) {
  PlanFacts facts = TwoPlannedNodes(8);
  const ExpertId most{2, 3};
  facts.nodes[0].activations[facts.grid.Index(most)] = 1e6;
  ClusterPlan plan = PlanOf(facts);
  OrderPlan(facts, {Nothing(facts), Nothing(facts)}, plan);
  const ClusterPlan::Node& node = *plan.Find("a");
  ASSERT_EQ(node.come.size(), 8u);
  EXPECT_EQ(node.come.front(), most);
  EXPECT_TRUE(node.go.empty());
  const auto step = NextStep(
      node, {.grid = facts.grid, .held = Nothing(facts), .most_held = 8, .may_go = [](ExpertId) {
               return false;
             }});
  ASSERT_TRUE(step);
  EXPECT_EQ(std::get<HoldStep>(*step).layer, most.layer);
  EXPECT_EQ(std::get<HoldStep>(*step).experts.front(), most.expert);
}

// Both are full, and each wants what the other holds: the order is one that both can follow, and
// all come where they are wanted.
TEST(PlanOrder, TwoFullNodesThatSwapAllTheyHoldComeToTheEnd) {
  PlanFacts facts = TwoPlannedNodes(9);  // one more than half
  ClusterPlan before = PlanOf(facts);
  std::swap(facts.nodes[0].activations, facts.nodes[1].activations);
  ClusterPlan plan = PlanOf(facts);
  HoldingsNow held = {Nothing(facts), Nothing(facts)};
  for (std::size_t node = 0; node < 2; ++node) {
    for (std::uint32_t layer = 0; layer < facts.grid.layers; ++layer) {
      for (const std::uint32_t expert : before.nodes[node].held[layer]) {
        held[node][facts.grid.Index({layer, expert})] = 1;
      }
    }
  }
  OrderPlan(facts, held, plan);
  EXPECT_FALSE(plan.nodes[0].come.empty());
  EXPECT_FALSE(plan.nodes[0].go.empty());
  for (int turn = 0; turn < 200; ++turn) {
    const std::size_t node = static_cast<std::size_t>(turn % 2);
    const auto elsewhere = [&](ExpertId id) { return held[1 - node][facts.grid.Index(id)] != 0; };
    const auto step =
        NextStep(plan.nodes[node],
                 {.grid = facts.grid, .held = held[node], .most_held = 9, .may_go = elsewhere});
    if (!step) continue;
    if (const auto* hold = std::get_if<HoldStep>(&*step)) {
      for (const std::uint32_t expert : hold->experts) {
        held[node][facts.grid.Index({hold->layer, expert})] = 1;
      }
    } else {
      held[node][facts.grid.Index(std::get<ReleaseStep>(*step).id)] = 0;
    }
    ASSERT_LE(std::ranges::count(held[node], 1), 9 + HoldingFacts::kSwapSlots);
  }
  for (std::size_t node = 0; node < 2; ++node) {
    for (std::uint32_t layer = 0; layer < facts.grid.layers; ++layer) {
      for (std::uint32_t expert = 0; expert < facts.grid.experts; ++expert) {
        EXPECT_EQ(held[node][facts.grid.Index({layer, expert})] != 0,
                  std::ranges::binary_search(plan.nodes[node].held[layer], expert));
      }
    }
  }
}

TEST(PlanOrder, ANodeThatHoldsMoreThanItsMemoryAllowsIsOrderedAllTheSame) {
  PlanFacts facts = TwoPlannedNodes(8);
  const std::vector<std::uint8_t> all(facts.grid.Count(), 1);
  ClusterPlan plan = PlanOf(facts);
  OrderPlan(facts, {all, Nothing(facts)}, plan);
  EXPECT_EQ(plan.Find("b")->come.size(), 8u);
}

}  // namespace
}  // namespace troupe
