#include "cluster/members/cluster_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/edited_text.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

NodeRecord SomeNode() {
  return {.name = "a",
          .address = "10.0.0.3:7400",
          .model = "9f3c",
          .start = "7d1e",
          .ttl = 2'500'000'000,
          .plan = {.epoch = 71, .by = "55aa"}};
}

TEST(ClusterKeys, NodesAreFoundByTheirKeysAndNothingElseIs) {
  const ClusterKeys keys("lab");
  EXPECT_EQ(keys.prefix(), "/troupe/lab/");
  EXPECT_EQ(keys.node("a"), "/troupe/lab/nodes/a");
  EXPECT_EQ(keys.NodeOf("/troupe/lab/nodes/a"), "a");
  EXPECT_EQ(keys.NodeOf("/troupe/lab/nodes/"), "");
  EXPECT_EQ(keys.NodeOf(keys.leader()), "");
  EXPECT_EQ(keys.NodeOf("/troupe/lab2/nodes/a"), "");
}

TEST(ClusterKeys, NamesThatCouldBePathsAreRefused) {
  EXPECT_TRUE(CheckClusterName("node", "rack-1.node_2").ok());
  for (const std::string name : {"", "a/b", "a b", "\xc3\xa4", "a\n"}) {
    EXPECT_FALSE(CheckClusterName("node", name).ok()) << name;
  }
  EXPECT_TRUE(CheckClusterName("node", std::string(63, 'a')).ok());
  EXPECT_FALSE(CheckClusterName("node", std::string(64, 'a')).ok());
}

TEST(ClusterKeys, ValuesReadBackAsTheyWere) {
  EXPECT_EQ(ParseNode("a", ToValue(SomeNode())).value(), SomeNode());
  const LeaderRecord leader = {.node = "a", .start = "7d1e"};
  EXPECT_EQ(ParseLeader(ToValue(leader)).value(), leader);
  const PlanRecord plan = {.stamp = {.epoch = 71, .by = "7d1e"},
                           .plan = Json({{"layers", Json::Array({1, 2})}})};
  const PlanRecord read = ParsePlan(ToValue(plan)).value();
  EXPECT_EQ(read.stamp, plan.stamp);
  EXPECT_EQ(read.plan, plan.plan);
}

TEST(ClusterKeys, AValueOfANewerVersionMaySayMore) {
  const std::string value = Edited(ToValue(SomeNode()), "{", R"({"zone": "east", )");
  EXPECT_EQ(ParseNode("a", value).value(), SomeNode());
}

TEST(ClusterKeys, AnEpochThatANodeFollowsLeavesRoomForTheNextPlans) {
  const auto parsed = [](std::uint64_t epoch) {
    return ParseNode("a", ToValue(NodeRecord{.name = "a",
                                             .address = "a:1",
                                             .model = "m",
                                             .start = "s",
                                             .ttl = 1'000'000'000,
                                             .plan = {.epoch = epoch, .by = "b"}}));
  };
  constexpr std::uint64_t kMost = std::uint64_t{1} << 61;
  EXPECT_TRUE(parsed(kMost).ok());
  EXPECT_FALSE(parsed(2 * kMost).ok());
  const PlanRecord next = {.stamp = {.epoch = kMost + 1, .by = "b"}, .plan = Json::Object()};
  EXPECT_TRUE(ParsePlan(ToValue(next)).ok()) << "what a leader makes of it";
}

TEST(ClusterKeys, WhatIsNotAValueIsSaid) {
  EXPECT_THAT(ParseNode("a", "{}").status().message(), HasSubstr("node a: no 'address'"));
  const std::string value = ToValue(SomeNode());
  EXPECT_FALSE(ParseNode("a", Edited(value, "2.5", "-1")).ok());
  EXPECT_FALSE(ParseNode("a", Edited(value, "71", "7.5")).ok());
  EXPECT_FALSE(ParseNode("a", Edited(value, "71", "4611686018427387905")).ok());  // 2^62 + 1
  EXPECT_FALSE(ParseLeader("a").ok());
  EXPECT_FALSE(ParsePlan(R"({"epoch": 3, "by": "x"})").ok());
}

}  // namespace
}  // namespace troupe
