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
      .nodes = {{.name = "a", .held = {{}, {0, 3}}}, {.name = "b", .held = {{1}, {0, 1, 2}}}}};
  const Result<ClusterPlan> read = ParseClusterPlan(ToJson(plan), kPlanGrid, plan.epoch);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, plan);
  EXPECT_EQ(read->Find("b")->count(), 4u);
  EXPECT_EQ(read->Find("c"), nullptr);
}

TEST(ClusterPlan, WhatIsWrongIsNamedByItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "nodes"},
      {R"({"nodes":[],"more":1})", "more"},
      {R"({"nodes":[{"name":"a","held":[[0]]}]})", "2 layers"},
      {R"({"nodes":[{"name":"a","held":[[0],[4]]}]})", "nodes[0].held[1][0]"},
      {R"({"nodes":[{"name":"a","held":[[0,0],[]]}]})", "nodes[0].held[0][1]"},
      {R"({"nodes":[{"name":"a","held":[[],[]]},{"name":"a","held":[[],[]]}]})", "nodes[1].name"},
      {"[]", "plan"},
      {"{", "plan"}};
  for (const auto& [text, said] : cases) {
    const Result<ClusterPlan> read = ParseClusterPlan(text, kPlanGrid, 1);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(said)) << text;
  }
}

}  // namespace
}  // namespace troupe
