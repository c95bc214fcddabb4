#include "cluster/plan/plan_maker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/rng.h"
#include "cluster/plan/planned_nodes_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(PlanMaker, EachNodeHoldsWhatItsUsersActivateAndTogetherTheyHoldAll) {
  for (const char* placer : {"dancemoe", "optimum", "latency"}) {
    SCOPED_TRACE(placer);
    const ClusterPlan plan = PlanOf(TwoPlannedNodes(8), placer);
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
    const PlanFacts facts = TwoPlannedNodes(4);
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
  PlanFacts facts = TwoPlannedNodes(8);
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

TEST(PlanMaker, CopiesThatAreDemandedLieOnDifferentNodes) {
  PlanFacts facts = TwoPlannedNodes(16);
  facts.copies = 2;
  const ClusterPlan plan = PlanOf(facts);
  for (const ClusterPlan::Node& node : plan.nodes) EXPECT_EQ(node.count(), 16u) << node.name;
}

TEST(PlanMaker, WhereMemoryIsShortTheMostUsedHaveCopies) {
  PlanFacts facts = TwoPlannedNodes(12);
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

// Where memory allows all of them, whatever users activate and however unequal the nodes are.
TEST(PlanMaker, NoCopyIsLackingWhereThereIsMemoryForAll) {
  Rng rng(TestSeed());
  for (int round = 0; round < 300; ++round) {
    PlanFacts facts = TwoPlannedNodes(0);
    facts.copies = 2 + static_cast<std::uint32_t>(rng.Below(2));
    facts.nodes.clear();
    const std::uint32_t wanted = facts.copies * 16;
    for (std::uint32_t room = 0; room < wanted;) {
      NodeFacts node{.name = std::to_string(facts.nodes.size()),
                     .most_held = 4 + static_cast<std::uint32_t>(rng.Below(13)),
                     .activations = std::vector<double>(facts.grid.Count())};
      for (double& uses : node.activations) uses = rng.Uniform();
      room += node.most_held;
      facts.nodes.push_back(std::move(node));
    }
    const ClusterPlan plan = PlanOf(facts);
    for (const NodeFacts& node : facts.nodes) {
      ASSERT_LE(plan.Find(node.name)->count(), node.most_held);
    }
    for (std::uint32_t layer = 1; layer < facts.grid.layers; ++layer) {
      for (std::uint32_t expert = 0; expert < facts.grid.experts; ++expert) {
        const auto copies = std::ranges::count_if(plan.nodes, [&](const ClusterPlan::Node& node) {
          return std::ranges::binary_search(node.held[layer], expert);
        });
        ASSERT_GE(copies, facts.copies) << round << ": " << layer << "." << expert;
      }
    }
  }
}

TEST(PlanMaker, ThePlanCanBeRead) {
  const PlanFacts facts = TwoPlannedNodes(6);
  const ClusterPlan plan = PlanOf(facts);
  EXPECT_EQ(ParseClusterPlan(ToJson(plan, facts.grid), "cafe", facts.grid, plan.epoch).value(),
            plan);
}

}  // namespace
}  // namespace troupe
