// Nodes whose members, leader and plan a store says: what they do while it is away, and what
// becomes of plans that it does not take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <variant>
#include <vector>

#include "cluster/node_core_for_test.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr Nanos kStoreSecond = SimulatedNodes::kSecond;
constexpr ExpertGrid kStoreGrid = SimulatedNodes::kGrid;

TEST(NodeCoreWithStore, NodesFindEachOtherAndFollowThePlanOfWhoLeads) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kStoreSecond);
  ExpectWell(nodes);
  (void)LeaderOf(nodes);
}

TEST(NodeCoreWithStore, APlanOfSingleCopiesDoesNotStayWhereMoreAreDemanded) {
  SimulatedNodes nodes({.most_held = 8, .has_store = true});
  nodes.Run(30 * kStoreSecond);
  ExpectWell(nodes);
  nodes.set_copies(2);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes.Kill(i);
  nodes.Run(30 * kStoreSecond);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes.Start(i);
  nodes.Run(90 * kStoreSecond);
  ExpectWell(nodes);
  for (const std::uint32_t layer : {1u, 2u}) {
    for (std::uint32_t expert = 0; expert < kStoreGrid.experts; ++expert) {
      std::size_t copies = 0;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        copies += nodes.held(i)[kStoreGrid.Index({layer, expert})];
      }
      EXPECT_GE(copies, 2u) << layer << " " << expert;
    }
  }
}

TEST(NodeCoreWithStore, WhoLeadsNoMoreIsSaid) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kStoreSecond);
  nodes.store().Stop();
  nodes.Run(60 * kStoreSecond);
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("leads no more")));
}

TEST(NodeCoreWithStore, AnotherLeadsWhenALeaderDiesAndKnowsWhatUsersActivated) {
  SimulatedNodes nodes({.most_held = 4, .has_store = true});
  nodes.Run(20 * kStoreSecond);
  const std::size_t first = LeaderOf(nodes);
  const std::size_t user = (first + 1) % nodes.size();
  std::vector<std::uint32_t> uses(kStoreGrid.Count(), 1);
  for (const std::uint32_t expert : {4u, 5u}) {
    for (const std::uint32_t layer : {1u, 2u}) uses[kStoreGrid.Index({layer, expert})] = 1'000'000;
  }
  nodes.core(user)->OnActivity(uses, nodes.now());
  nodes.Run(60 * kStoreSecond);
  const std::uint64_t epoch = nodes.core(user)->plan()->epoch;
  nodes.Kill(first);
  nodes.Run(150 * kStoreSecond);
  EXPECT_NE(LeaderOf(nodes), first);
  EXPECT_GT(nodes.core(user)->plan()->epoch, epoch);
  EXPECT_EQ(nodes.core(user)->plan()->nodes.size(), 2u);
  for (const std::uint32_t layer : {1u, 2u}) {
    for (const std::uint32_t expert : {4u, 5u}) {
      EXPECT_EQ(nodes.held(user)[kStoreGrid.Index({layer, expert})], 1) << layer << " " << expert;
    }
  }
  nodes.Start(first);
  nodes.Run(60 * kStoreSecond);
  ExpectWell(nodes);
}

TEST(NodeCoreWithStore, WhileTheStoreIsAwayNodesGoOnByTheLastPlanAndNobodyLeads) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kStoreSecond);
  const std::uint64_t epoch = nodes.core(1)->plan()->epoch;
  nodes.store().Stop();
  nodes.Run(300 * kStoreSecond);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_FALSE(nodes.core(i)->leads());
    EXPECT_EQ(nodes.core(i)->Peers().size(), 2u);
    EXPECT_EQ(nodes.core(i)->plan()->epoch, epoch);
  }
  nodes.store().Start();
  nodes.Run(60 * kStoreSecond);
  ExpectWell(nodes);
  (void)LeaderOf(nodes);
}

void PutPlan(SimulatedNodes& nodes, const PlanRecord& plan) {
  const KvPut put{.key = ClusterKeys("lab").plan(), .value = ToValue(plan)};
  (void)nodes.store().state().Answer(1, KvTransaction{.puts = {put}}, nodes.now());
}

// Who followed it would say hello with it, and no peer takes such a hello.
TEST(NodeCoreWithStore, ARecordOfAnEpochBeyondAnyKeepsNoNodesApart) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kStoreSecond);
  ExpectWell(nodes);
  PutPlan(nodes, {.stamp = {.epoch = kMostEpoch + 1, .by = "x"},
                  .plan = Json::Parse(ToJson(*nodes.core(0)->plan(), kStoreGrid)).value()});
  nodes.Run(30 * kStoreSecond);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes.Kill(i);
    nodes.Run(30 * kStoreSecond);
    nodes.Start(i);
    nodes.Run(90 * kStoreSecond);
  }
  ExpectWell(nodes);
  EXPECT_LE(nodes.core(0)->plan()->epoch, kMostEpoch);
}

// As one that is left of a time when the cluster's nodes served another one.
void PutPlanForAnotherModel(SimulatedNodes& nodes) {
  ClusterPlan other{.epoch = 1'000'000, .model = "beef", .nodes = {{.name = "n0"}}};
  other.nodes[0].held = {{}, {0}, {0}};
  PutPlan(nodes, {.stamp = {.epoch = other.epoch, .by = "x"},
                  .plan = Json::Parse(ToJson(other, kStoreGrid)).value()});
}

void KillAll(SimulatedNodes& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes.Kill(i);
  nodes.Run(30 * kStoreSecond);
}

TEST(NodeCoreWithStore, NodesThatServeReplaceAPlanForAnotherModel) {
  for (const bool is_running : {false, true}) {
    SCOPED_TRACE(is_running);
    SimulatedNodes nodes({.has_store = true});
    nodes.Run(30 * kStoreSecond);
    ExpectWell(nodes);
    if (!is_running) {
      KillAll(nodes);
      nodes.set_new_model(true);
    }
    PutPlanForAnotherModel(nodes);
    if (!is_running) {
      for (std::size_t i = 0; i < nodes.size(); ++i) nodes.Start(i);
    }
    nodes.Run(60 * kStoreSecond);
    ExpectWell(nodes);
    EXPECT_THAT(nodes.failed(), testing::IsEmpty());
    EXPECT_THAT(nodes.said(), Contains(HasSubstr("plan 1000000 of the store is not followed")));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_GT(nodes.core(i)->plan()->epoch, 1'000'000u);
      EXPECT_NE(nodes.core(i)->plan()->model, "beef");
    }
  }
}

// A machine with the wrong model that is the first to be started, while all others are off.
TEST(NodeCoreWithStore, APlanForAnotherModelEndsANodeThatHasJustStartedAndStays) {
  SimulatedNodes nodes({.nodes = 1, .has_store = true});
  nodes.Run(30 * kStoreSecond);
  KillAll(nodes);
  PutPlanForAnotherModel(nodes);
  nodes.Start(0);
  nodes.Run(60 * kStoreSecond);  // as a server that still answers what its users have asked
  EXPECT_THAT(nodes.failed(),
              testing::ElementsAre(testing::AllOf(
                  HasSubstr("cluster 'lab' serves another model: plan 1000000 in etcd is for beef"),
                  HasSubstr("--new-model"))));
  EXPECT_FALSE(nodes.core(0)->plan());
  KillAll(nodes);
  nodes.set_new_model(true);
  nodes.Start(0);
  nodes.Run(60 * kStoreSecond);
  ASSERT_TRUE(nodes.core(0)->plan());
  EXPECT_GT(nodes.core(0)->plan()->epoch, 1'000'000u);
  EXPECT_EQ(nodes.failed().size(), 1u);
}

// Its lease has run out, and a copy of it, or a stranger's model, was sooner.
TEST(NodeCoreWithStore, ANodeThatWasListedServesOnWhoeverIsListedInItsPlace) {
  for (const bool other_model : {false, true}) {
    SimulatedNodes nodes({.has_store = true});
    nodes.Run(30 * kStoreSecond);
    nodes.store().Restore({});
    const NodeRecord other{.name = other_model ? "stranger" : "n1",
                           .address = "stranger:7070",
                           .model = other_model ? "another" : "7",
                           .start = "4711",
                           .ttl = 10 * kStoreSecond};
    const KvPut put{.key = ClusterKeys("lab").node(other.name), .value = ToValue(other)};
    (void)nodes.store().state().Answer(1, KvTransaction{.puts = {put}}, nodes.now());
    nodes.Run(120 * kStoreSecond);
    EXPECT_THAT(nodes.failed(), testing::IsEmpty());
    EXPECT_THAT(nodes.said(), Contains(HasSubstr("not listed any more")));
    for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes.core(i)->Peers().size(), 2u);
  }
}

TEST(NodeCoreWithStore, ALinkThatBreaksWhileTheStoreIsAwayIsDialledAgain) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kStoreSecond);
  nodes.store().Stop();
  nodes.Run(30 * kStoreSecond);
  nodes.CutAny();
  nodes.Run(kStoreSecond);
  nodes.Mend();
  nodes.Run(10 * kStoreSecond);
  ExpectWell(nodes);
}

// A node that leads alone, by a store that a test plays itself.
class NodeCoreThatLeads : public testing::Test {
 protected:
  NodeCoreThatLeads()
      : core_({.hello = {.start_id = 1,
                         .model = {7, 8},
                         .grid = kStoreGrid,
                         .width = 64,
                         .cluster = "lab",
                         .node = "a",
                         .address = "a:1"},
               .expert_bytes = 100,
               .most_held = 6,
               .held = std::vector<std::uint8_t>(kStoreGrid.Count())},
              {.addresses = {}, .planner = {}}, 0) {
    core_.OnMembers({"a:1"});
    core_.OnLeader(NodeLeader{.node = "a", .address = "a:1", .self = true}, 0);
  }

  // Lets time go on until it wants a plan stored, a second at a time; how many that took.
  int SecondsToAPlan() {
    for (int seconds = 1; seconds < 1000; ++seconds) {
      core_.OnTime(now_ += kStoreSecond);
      for (int round = 0; round < 2; ++round) {
        for (NodeAction& action : core_.TakeActions()) {
          if (std::holds_alternative<node_action::WritePlan>(action)) return seconds;
          if (auto* choose = std::get_if<node_action::Choose>(&action)) {
            core_.OnPlanChosen(ChoosePlan(choose->job), now_);
          }
        }
      }
    }
    return 1000;
  }

  NodeCore core_;
  Nanos now_ = 0;
};

TEST_F(NodeCoreThatLeads, APlanThatTheStoreDidNotTakeIsTriedAgainSoon) {
  EXPECT_LT(SecondsToAPlan(), 10);
  core_.OnPlanWritten(Error(Code::kUnavailable, "the store is away"), now_);
  EXPECT_LT(SecondsToAPlan(), 10);
}

TEST_F(NodeCoreThatLeads, AStoreThatIsFullIsSaidOnceAndTriedLessAndLess) {
  int said = 0, last = 0;
  const auto refuse = [&](const Status& why) {
    core_.OnPlanWritten(why, now_);
    for (const NodeAction& action : core_.TakeActions()) {
      said += std::holds_alternative<node_action::Say>(action) ? 1 : 0;
    }
  };
  for (int i = 0; i < 6; ++i) {
    ASSERT_LT(last = SecondsToAPlan(), 1000);
    refuse(Error(Code::kUnavailable, "it is not known whether plan {} was written: full", 70 + i));
  }
  EXPECT_EQ(said, 1);
  EXPECT_GE(last, 60);
  EXPECT_TRUE(core_.PlanNow(now_).ok());
  EXPECT_LT(SecondsToAPlan(), 10) << "somebody wants one now";
  refuse(Error(Code::kUnavailable, "the store is away"));
  EXPECT_EQ(said, 2) << "another reason";
}

TEST_F(NodeCoreThatLeads, APlanThatIsTooLargeForTheStoreIsSaidOnce) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_LT(SecondsToAPlan(), 1000);
    core_.OnPlanWritten(InvalidArgument("plan not written: too large"), now_);
    int said = 0;
    for (const NodeAction& action : core_.TakeActions()) {
      said += std::holds_alternative<node_action::Say>(action) ? 1 : 0;
    }
    EXPECT_EQ(said, i == 0 ? 1 : 0);
    EXPECT_THAT(core_.look()->unwritten, HasSubstr("too large"));
  }
  EXPECT_EQ(core_.plans_unwritten(), 3u);
  EXPECT_GT(SecondsToAPlan(), 60);  // it is not tried every few seconds
}

}  // namespace
}  // namespace troupe
