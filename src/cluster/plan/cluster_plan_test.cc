#include "cluster/plan/cluster_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const Result<ClusterPlan> read = ParseClusterPlan(ToJson(plan), "cafe", kPlanGrid, plan.epoch);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, plan);
  EXPECT_EQ(read->Find("b")->count(), 4u);
  EXPECT_EQ(read->Find("c"), nullptr);
}

TEST(ClusterPlan, WhatIsWrongIsNamedByItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "model"},
      {R"({"model":"cafe"})", "nodes"},
      {R"({"model":"beef","nodes":[]})", "this node's model, cafe"},
      {R"({"model":"cafe","nodes":[],"more":1})", "more"},
      {R"({"model":"cafe","nodes":[{"name":"a","held":[[0]]}]})", "2 layers"},
      {R"({"model":"cafe","nodes":[{"name":"a","held":[[0],[4]]}]})", "nodes[0].held[1][0]"},
      {R"({"model":"cafe","nodes":[{"name":"a","held":[[0,0],[]]}]})", "nodes[0].held[0][1]"},
      {R"({"model":"cafe","nodes":[{"name":"a","held":[[],[]]},{"name":"a","held":[[],[]]}]})",
       "nodes[1].name"},
      {R"({"model":"cafe","nodes":[{"name":"a","held":[[],[]],"come":[[2,0]]}]})", "come[0][0]"},
      {R"({"model":"cafe","nodes":[{"name":"a","held":[[],[]],"go":[[0]]}]})", "go[0]"},
      {"[]", "plan"},
      {"{", "plan"}};
  for (const auto& [text, said] : cases) {
    const Result<ClusterPlan> read = ParseClusterPlan(text, "cafe", kPlanGrid, 1);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(said)) << text;
  }
}

}  // namespace
}  // namespace troupe
