#include "cluster/plan/cluster_plan.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr ExpertGrid kPlanGrid{.layers = 2, .experts = 4};

TEST(ClusterPlan, ComesBackFromItsJson) {
  const ClusterPlan plan{
      .epoch = 7,
      .model = "cafe",
      .nodes = {{.name = "a", .held = {{}, {0, 3}}},
                {.name = "b", .held = {{1}, {0, 1, 2}}, .come = {{1, 2}, {0, 1}}, .go = {{1, 3}}}}};
  const Result<ClusterPlan> read =
      ParseClusterPlan(ToJson(plan, kPlanGrid), "cafe", kPlanGrid, plan.epoch);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, plan);
  EXPECT_EQ(read->Find("b")->count(), 4u);
  EXPECT_EQ(read->Find("c"), nullptr);
}

// Experts of nodes and orders drawn by a seed, `share` of the grid on each.
ClusterPlan LargePlan(ExpertGrid grid, std::size_t nodes, double share, std::uint64_t seed) {
  Rng rng(seed);
  ClusterPlan plan{.epoch = 1, .model = std::string(32, 'c'), .nodes = {}};
  for (std::size_t i = 0; i < nodes; ++i) {
    ClusterPlan::Node& node = plan.nodes.emplace_back();
    node.name = fmt::format("machine-{}.rack.lab.example", i);
    node.held.resize(grid.layers);
    for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
      for (std::uint32_t expert = 0; expert < grid.experts; ++expert) {
        const bool held = rng.Uniform() < share;
        if (held) node.held[layer].push_back(expert);
        (held ? node.come : node.go).push_back({layer, expert});
      }
    }
    std::shuffle(node.come.begin(), node.come.end(), rng);
  }
  return plan;
}

TEST(ClusterPlan, OfLargeModelsOnManyNodesFitsInARequestToEtcd) {
  const std::pair<ExpertGrid, std::size_t> cases[] = {{{.layers = 48, .experts = 512}, 3},
                                                      {{.layers = 94, .experts = 512}, 16},
                                                      {{.layers = 58, .experts = 256}, 256}};
  for (const auto& [grid, nodes] : cases) {
    const ClusterPlan plan = LargePlan(grid, nodes, 0.7, TestSeed());
    const std::string text = ToJson(plan, grid);
    EXPECT_LT(text.size(), std::size_t{720} << 10) << nodes << " nodes";  // of membership.cc
    const ClusterPlan read = ParseClusterPlan(text, plan.model, grid, plan.epoch).value();
    EXPECT_TRUE(read.SaysTheSameAs(plan)) << nodes << " nodes";
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::vector<ExpertId>&all = plan.nodes[i].come, &named = read.nodes[i].come;
      ASSERT_LE(named.size(), all.size());
      EXPECT_FALSE(named.empty());
      EXPECT_TRUE(std::equal(named.begin(), named.end(), all.begin()));
      if (nodes == 3) {
        EXPECT_EQ(named, all);
      }
    }
  }
}

TEST(ClusterPlan, WhatIsWrongIsNamedByItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "a plan of form 2"},
      {R"({"model":"cafe","nodes":[{"name":"a","held":[[],[0]]}]})", "a plan of form 2"},
      {R"({"form":3,"model":"cafe","nodes":[]})", "a plan of form 2"},
      {R"({"form":2})", "model"},
      {R"({"form":2,"model":"cafe"})", "nodes"},
      {R"({"form":2,"model":"beef","nodes":[]})", "this node's model, cafe"},
      {R"({"form":2,"model":"cafe","nodes":[],"more":1})", "more"},
      {R"({"form":2,"model":"cafe","nodes":[{"name":"a","held":"/"}]})", "nodes[0].held"},
      {R"({"form":2,"model":"cafe","nodes":[{"name":"a","held":"/wA="}]})",
       "a bit for each expert of 2 layers of 4"},
      {R"({"form":2,"model":"cafe","nodes":[{"name":"a","held":"/w=="},{"name":"a","held":"/w=="}]})",
       "nodes[1].name"},
      {R"({"form":2,"model":"cafe","nodes":[{"name":"a","held":"/w==","come":"AAAI"}]})",
       "experts below 8"},
      {R"({"form":2,"model":"cafe","nodes":[{"name":"a","held":"/w==","go":"AAA="}]})",
       "three bytes"},
      {"[]", "plan"},
      {"{", "plan"}};
  for (const auto& [text, said] : cases) {
    const Result<ClusterPlan> read = ParseClusterPlan(text, "cafe", kPlanGrid, 1);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(said)) << text;
  }
  const char* const beyond = R"({"form":2,"model":"cafe","nodes":[{"name":"a","held":"gA=="}]})";
  const Result<ClusterPlan> read = ParseClusterPlan(beyond, "cafe", {.layers = 1, .experts = 7}, 1);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr("no bits behind"));
}

}  // namespace
}  // namespace troupe
