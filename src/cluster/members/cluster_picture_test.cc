#include "cluster/members/cluster_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/members/plan_epochs.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr KvLease kOurs = 11, kAnothers = 12;

const ClusterKeys& LabKeys() {
  static const ClusterKeys keys("lab");
  return keys;
}

KvEntry NodeEntry(const std::string& name, PlanStamp plan = {}) {
  return {
      .key = LabKeys().node(name),
      .value = ToValue(NodeRecord{
          .name = name, .address = name, .model = "9f", .start = name, .plan = std::move(plan)}),
      .created = 5,
      .modified = 5};
}

KvEntry LeaderEntry(const std::string& node, KvLease lease, KvRevision created = 20) {
  return {.key = LabKeys().leader(),
          .value = ToValue(LeaderRecord{.node = node, .start = node}),
          .created = created,
          .modified = created,
          .lease = lease};
}

KvEntry PlanEntry(std::uint64_t epoch, const std::string& by, int content = 0) {
  return {.key = LabKeys().plan(),
          .value = ToValue(PlanRecord{.stamp = {.epoch = epoch, .by = by}, .plan = Json(content)}),
          .created = 9,
          .modified = 9};
}

// What node "a" with the lease kOurs makes of these entries, read one after the other.
class PictureOfA {
 public:
  ClusterPicture::Changed See(const std::vector<KvEntry>& entries, bool heard = true) {
    (void)view_.TakeRead(++revision_, entries, 0);
    return picture_.Look(view_, kOurs, heard);
  }
  ClusterPicture& operator*() { return picture_; }
  ClusterPicture* operator->() { return &picture_; }

 private:
  StoreView view_;
  KvRevision revision_ = 0;
  ClusterPicture picture_{LabKeys(), "a"};
};

TEST(ClusterPicture, ListsTheNodesWhoseValuesCanBeRead) {
  PictureOfA a;
  KvEntry damaged = NodeEntry("c");
  damaged.value = "{";
  EXPECT_TRUE(a.See({NodeEntry("a"), NodeEntry("b"), damaged}).nodes);
  EXPECT_THAT(a->nodes(),
              ElementsAre(Field(&NodeRecord::name, "a"), Field(&NodeRecord::name, "b")));
  EXPECT_FALSE(a.See({NodeEntry("a"), NodeEntry("b")}).nodes);
  EXPECT_TRUE(a.See({NodeEntry("b")}).nodes);
  EXPECT_THAT(a->nodes(), ElementsAre(Field(&NodeRecord::name, "b")));
}

TEST(ClusterPicture, LeadsOnlyByTheLeaseThatItHas) {
  PictureOfA a;
  EXPECT_TRUE(a.See({LeaderEntry("a", kOurs)}).leader);
  EXPECT_TRUE(a->leads());
  EXPECT_TRUE(a.See({LeaderEntry("a", kAnothers)}).leader);
  EXPECT_FALSE(a->leads());
  EXPECT_EQ(a->leader()->node, "a");
  a.See({LeaderEntry("b", kAnothers)});
  EXPECT_EQ(a->leader()->node, "b");
  EXPECT_EQ(a->leader()->revision, 20);
}

TEST(ClusterPicture, NobodyLeadsWhileTheStoreIsSilent) {
  PictureOfA a;
  a.See({LeaderEntry("a", kOurs), NodeEntry("a")});
  EXPECT_TRUE(a.See({LeaderEntry("a", kOurs), NodeEntry("a")}, /*heard=*/false).leader);
  EXPECT_FALSE(a->leader().has_value());
  EXPECT_EQ(a->nodes().size(), 1u);
}

TEST(ClusterPicture, AcceptsOnlyPlansOfALaterEpoch) {
  PictureOfA a;
  EXPECT_TRUE(a.See({PlanEntry(30, "b", 1)}).plan);
  EXPECT_FALSE(a.See({PlanEntry(29, "c", 2)}).plan);
  EXPECT_FALSE(a.See({PlanEntry(30, "c", 3)}).plan);
  EXPECT_FALSE(a.See({}).plan);
  EXPECT_EQ(a->plan()->plan, Json(1));
  EXPECT_TRUE(a.See({PlanEntry(31, "c", 4)}).plan);
  EXPECT_EQ(a->accepted(), (PlanStamp{.epoch = 31, .by = "c"}));
}

TEST(ClusterPicture, ALeaderWantsAPlanWhereNotAllCanFollowTheStores) {
  PictureOfA a;
  const KvEntry leader = LeaderEntry("a", kOurs);
  EXPECT_TRUE(a.See({leader}).plan_wanted);
  EXPECT_FALSE(a.See({leader}).plan_wanted) << "it is no news any more";
  EXPECT_TRUE(a->plan_wanted());
  const PlanStamp thirty = {.epoch = 30, .by = "b"};
  a.See({leader, PlanEntry(30, "b"), NodeEntry("b", thirty), NodeEntry("c")});
  EXPECT_FALSE(a->plan_wanted());
  // Of the same epoch, from the time before a restore.
  EXPECT_TRUE(
      a.See({leader, PlanEntry(30, "b"), NodeEntry("c", {.epoch = 30, .by = "d"})}).plan_wanted);
  a.See({leader, PlanEntry(31, "a")});
  EXPECT_FALSE(a->plan_wanted());
  a.See({leader, PlanEntry(31, "a"), NodeEntry("c", {.epoch = 32, .by = "d"})});
  EXPECT_TRUE(a->plan_wanted());
  a.See({leader, PlanEntry(30, "b")});
  EXPECT_TRUE(a->plan_wanted()) << "this node itself knows a newer one";
  a.See({LeaderEntry("b", kAnothers), PlanEntry(30, "b")});
  EXPECT_FALSE(a->plan_wanted());
}

TEST(ClusterPicture, AnEpochIsGreaterThanAllThatAreKnownAndIsNeverGivenTwice) {
  PictureOfA a;
  const KvEntry leader = LeaderEntry("a", kOurs, /*created=*/40);
  a.See({leader});
  EXPECT_EQ(a->TakeEpoch(), 40u);
  EXPECT_EQ(a->TakeEpoch(), 41u);
  a.See({leader, PlanEntry(50, "b")});
  EXPECT_EQ(a->TakeEpoch(), 51u);
  a.See({leader, PlanEntry(45, "b"), NodeEntry("c", {.epoch = 90, .by = "d"})});
  EXPECT_EQ(a->TakeEpoch(), 91u);
  a.See({leader});
  EXPECT_EQ(a->TakeEpoch(), 92u);
}

// One that says more has made it up, or follows what the store has, or had.
TEST(ClusterPicture, TheWordOfANodeLeavesEpochsToThePlansToCome) {
  PictureOfA a;
  const KvEntry leader = LeaderEntry("a", kOurs);
  a.See({leader, PlanEntry(50, "b"), NodeEntry("c", {.epoch = kMostEpoch, .by = "d"})});
  EXPECT_FALSE(a->plan_wanted());
  EXPECT_EQ(a->TakeEpoch(), 51u);
  a.See({leader, PlanEntry(50, "b"), NodeEntry("c", {.epoch = kMostTellableEpoch, .by = "d"})});
  EXPECT_TRUE(a->plan_wanted());
  EXPECT_EQ(a->TakeEpoch(), kMostTellableEpoch + 1);
}

TEST(ClusterPicture, ADamagedPlanIsReplaced) {
  PictureOfA a;
  KvEntry damaged = PlanEntry(7, "b");
  damaged.value = "{}";
  a.See({LeaderEntry("a", kOurs), damaged});
  EXPECT_FALSE(a->plan().has_value());
  EXPECT_TRUE(a->plan_wanted());
  EXPECT_THAT(a->nodes(), IsEmpty());
}

}  // namespace
}  // namespace troupe
