#include "cluster/members/cluster_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/members/plan_epochs.h"
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

// Or a node that follows such a plan would say hello with an epoch that every peer refuses.
TEST(ClusterKeys, AnEpochThatNoPeerMayTellOfIsNoneOfARecordEither) {
  NodeRecord node = SomeNode();
  PlanRecord plan = {.stamp = {.epoch = 0, .by = "b"}, .plan = Json::Object()};
  node.plan.epoch = plan.stamp.epoch = kMostEpoch;
  EXPECT_TRUE(ParseNode("a", ToValue(node)).ok());
  EXPECT_TRUE(ParsePlan(ToValue(plan)).ok());
  node.plan.epoch = plan.stamp.epoch = kMostEpoch + 1;
  EXPECT_FALSE(ParseNode("a", ToValue(node)).ok());
  EXPECT_FALSE(ParsePlan(ToValue(plan)).ok());
}

TEST(ClusterKeys, WhatIsNotAValueIsSaid) {
  EXPECT_THAT(ParseNode("a", "{}").status().message(), HasSubstr("node a: no 'address'"));
  const std::string value = ToValue(SomeNode());
  EXPECT_FALSE(ParseNode("a", Edited(value, "2.5", "-1")).ok());
  EXPECT_FALSE(ParseNode("a", Edited(value, "71", "7.5")).ok());
  EXPECT_FALSE(ParseNode("a", Edited(value, "71", "9007199254740993")).ok());  // 2^53 + 1
  EXPECT_FALSE(ParseLeader("a").ok());
  EXPECT_FALSE(ParsePlan(R"({"epoch": 3, "by": "x"})").ok());
}

}  // namespace
}  // namespace troupe
