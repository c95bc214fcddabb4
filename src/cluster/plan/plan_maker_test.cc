#include "cluster/plan/plan_maker.h"

#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

std::vector<double> Uses(const PlanFacts& facts, std::set<std::uint32_t> experts) {
  std::vector<double> uses(facts.grid.Count());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    uses[i] = experts.contains(static_cast<std::uint32_t>(i % facts.grid.experts)) ? 10 : 1;
  }
  return uses;
}

PlanFacts TwoNodes(std::uint32_t each) {
  PlanFacts facts{.grid = {.layers = 3, .experts = 8},
                  .first_layer = 1,
                  .experts_per_token = 2,
                  .expert_bytes = 1000,
                  .nodes = {},
                  .link = {.latency_seconds = 1e-4, .bytes_per_second = 1e8}};
  facts.nodes = {{.name = "a", .most_held = each, .activations = Uses(facts, {0, 1, 2, 3})},
                 {.name = "b", .most_held = each, .activations = Uses(facts, {4, 5, 6, 7})}};
  return facts;
}

ClusterPlan PlanOf(const PlanFacts& facts, const char* placer = "dancemoe") {
  return MakePlan(facts, *MakePlacer(placer, {}).value(), 5).value();
}

TEST(PlanMaker, EachNodeHoldsWhatItsUsersActivateAndTogetherTheyHoldAll) {
  for (const char* placer : {"dancemoe", "optimum", "latency"}) {
    SCOPED_TRACE(placer);
    const ClusterPlan plan = PlanOf(TwoNodes(8), placer);
    EXPECT_EQ(plan.epoch, 5u);
    ASSERT_EQ(plan.nodes.size(), 2u);
    for (const std::uint32_t layer : {1u, 2u}) {
      EXPECT_EQ(plan.Find("a")->held[layer], (std::vector<std::uint32_t>{0, 1, 2, 3}));
      EXPECT_EQ(plan.Find("b")->held[layer], (std::vector<std::uint32_t>{4, 5, 6, 7}));
    }
    EXPECT_TRUE(plan.Find("a")->held[0].empty());  // a layer without experts
  }
}

TEST(PlanMaker, WhereMemoryIsShortTheLeastUsedAreLeftToTheDisks) {
  for (const char* placer : {"dancemoe", "optimum", "latency"}) {
    SCOPED_TRACE(placer);
    const PlanFacts facts = TwoNodes(4);
    const PlacementProblem problem = ProblemOf(facts);
    EXPECT_EQ(problem.servers.size(), 3u);
    const ClusterPlan plan = PlanOf(facts, placer);
    ASSERT_EQ(plan.nodes.size(), 2u);
    for (const ClusterPlan::Node& node : plan.nodes) EXPECT_LE(node.count(), 4u);
    // None of them twice: what one holds the other is spared.
    std::set<std::pair<std::size_t, std::uint32_t>> held;
    for (const ClusterPlan::Node& node : plan.nodes) {
      for (std::size_t layer = 0; layer < node.held.size(); ++layer) {
        for (const std::uint32_t expert : node.held[layer]) held.emplace(layer, expert);
      }
    }
    EXPECT_EQ(held.size(), 8u);
  }
}

TEST(PlanMaker, NodesWithoutUsersSoFarArePlannedAsIfTheyUsedAllAlike) {
  PlanFacts facts = TwoNodes(8);
  for (NodeFacts& node : facts.nodes) node.activations.clear();
  const ClusterPlan plan = PlanOf(facts);
  std::set<std::pair<std::size_t, std::uint32_t>> held;
  for (const ClusterPlan::Node& node : plan.nodes) {
    EXPECT_EQ(node.count(), 8u);
    for (std::size_t layer = 0; layer < node.held.size(); ++layer) {
      for (const std::uint32_t expert : node.held[layer]) held.emplace(layer, expert);
    }
  }
  EXPECT_EQ(held.size(), 16u);
}

TEST(PlanMaker, AChangePaysIfItSavesMoreThanMovingTakes) {
  PlanFacts facts = TwoNodes(8);
  const ClusterPlan from = PlanOf(facts);
  std::swap(facts.nodes[0].activations, facts.nodes[1].activations);
  const ClusterPlan to = PlanOf(facts);
  ASSERT_NE(from.nodes, to.nodes);
  EXPECT_TRUE(PaysToAdopt(facts, from, to, 1e-3));
  EXPECT_FALSE(PaysToAdopt(facts, from, to, 1e-12));
  EXPECT_FALSE(PaysToAdopt(facts, to, to, 1));
}

TEST(PlanMaker, WhatComesToLieOnDisksAloneCostsNoMove) {
  PlanFacts facts = TwoNodes(6);
  const ClusterPlan from = PlanOf(facts);
  std::swap(facts.nodes[0].activations, facts.nodes[1].activations);
  const ClusterPlan to = PlanOf(facts);
  ASSERT_NE(from.nodes, to.nodes);
  ASSERT_EQ(ProblemOf(facts).servers.size(), 3u);
  EXPECT_TRUE(PaysToAdopt(facts, from, to, 1e-3));
}

TEST(PlanMaker, CopiesThatAreDemandedLieOnDifferentNodes) {
  PlanFacts facts = TwoNodes(16);
  facts.copies = 2;
  const ClusterPlan plan = PlanOf(facts);
  for (const ClusterPlan::Node& node : plan.nodes) EXPECT_EQ(node.count(), 16u) << node.name;
}

TEST(PlanMaker, WhereMemoryIsShortTheMostUsedHaveCopies) {
  PlanFacts facts = TwoNodes(12);
  facts.copies = 2;
  const ClusterPlan plan = PlanOf(facts);
  double with_copy = 1e9, without = 0;
  for (std::uint32_t layer = 1; layer < facts.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < facts.grid.experts; ++expert) {
      std::size_t holders = 0;
      double uses = 0;
      for (std::size_t node = 0; node < 2; ++node) {
        EXPECT_LE(plan.nodes[node].count(), 12u);
        holders +=
            static_cast<std::size_t>(std::ranges::count(plan.nodes[node].held[layer], expert));
        uses += facts.nodes[node].activations[facts.grid.Index({layer, expert})];
      }
      EXPECT_GE(holders, 1u) << layer << " " << expert;
      (holders == 2 ? with_copy = std::min(with_copy, uses) : without = std::max(without, uses));
    }
  }
  EXPECT_GE(with_copy, without);
}

TEST(PlanMaker, APlanOfOtherNodesIsNeverKept) {
  PlanFacts facts = TwoNodes(8);
  const ClusterPlan from = PlanOf(facts);
  facts.nodes.push_back(facts.nodes[0]);
  facts.nodes[2].name = "c";
  EXPECT_TRUE(PaysToAdopt(facts, from, PlanOf(facts), 1e-12));
}

TEST(PlanMaker, ThePlanCanBeRead) {
  const PlanFacts facts = TwoNodes(6);
  const ClusterPlan plan = PlanOf(facts);
  EXPECT_EQ(ParseClusterPlan(ToJson(plan), facts.grid, plan.epoch).value(), plan);
}

}  // namespace
}  // namespace troupe
