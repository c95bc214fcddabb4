#include "cluster/migration_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanos kMigrationSecond = 1'000'000'000;

class MigrationProgressTest : public testing::Test {
 protected:
  // An expert of layer l has 100 (l + 1) bytes.
  MigrationProgress progress_{[](std::uint32_t layer) { return 100 * (layer + 1); }};
  std::set<ExpertId> a_, b_;  // what they hold
  ClusterPlan plan_{.epoch = 7,
                    .model = "m",
                    .nodes = {{.name = "a", .held = {{0, 1}, {0}}, .come = {}, .go = {}},
                              {.name = "b", .held = {{2}, {1, 2}}, .come = {}, .go = {}}}};

  MigrationProgress::Node A(bool is_done = false) {
    return {
        .name = "a", .holds = [this](ExpertId id) { return a_.contains(id); }, .is_done = is_done};
  }
  MigrationProgress::Node B() {
    return {.name = "b", .holds = [this](ExpertId id) { return b_.contains(id); }};
  }
  void Look(std::vector<MigrationProgress::Node> here, Nanos seconds) {
    progress_.Look(plan_, here, seconds * kMigrationSecond);
  }
  MigrationLook At(Nanos seconds) { return progress_.At(seconds * kMigrationSecond); }
};

TEST_F(MigrationProgressTest, WithoutAPlanThereIsNone) { EXPECT_EQ(At(5), MigrationLook()); }

TEST_F(MigrationProgressTest, CountsWhatHasComeOfWhatWasToComeAndForeseesItsEnd) {
  a_ = {{0, 0}};
  Look({A(), B()}, 10);
  EXPECT_EQ(At(12), (MigrationLook{.epoch = 7,
                                   .nodes = {{"a", 2, 0}, {"b", 3, 0}},
                                   .experts = 5,
                                   .bytes = 800,
                                   .seconds = 2,
                                   .quiet_seconds = 2}));
  a_.insert({1, 0});  // 200 bytes of 300 in 4 s
  b_.insert({0, 2});  // 100 of 500
  Look({A(), B()}, 14);
  MigrationLook look = At(14);
  EXPECT_THAT(look.nodes,
              ElementsAre(MigrationLook::Node{"a", 2, 1}, MigrationLook::Node{"b", 3, 1}));
  EXPECT_EQ(look.bytes_moved, 300u);
  EXPECT_EQ(look.quiet_seconds, 0);
  ASSERT_TRUE(look.seconds_left);
  EXPECT_DOUBLE_EQ(*look.seconds_left, 16) << "b, the slower one, has four times as much to come";
  a_.insert({0, 1});
  b_ = {{0, 2}, {1, 1}, {1, 2}};
  Look({A(), B()}, 20);
  look = At(21);
  EXPECT_EQ(look.moved, look.experts);
  EXPECT_EQ(look.bytes_moved, look.bytes);
  EXPECT_EQ(look.quiet_seconds, 1);
  EXPECT_FALSE(look.seconds_left) << "nothing is left";
}

TEST_F(MigrationProgressTest, WhatHasComeStaysMovedThoughItIsLetGoToRest) {
  Look({A()}, 0);
  a_ = {{0, 0}};
  Look({A()}, 1);
  a_ = {};
  Look({A()}, 2);
  EXPECT_THAT(At(2).nodes, ElementsAre(MigrationLook::Node{"a", 3, 1}));
}

// Experts that rested under the plan before go on with it, and nothing is to come of them.
TEST_F(MigrationProgressTest, ANodeThatSaysThatItIsDoneHasNothingToCome) {
  Look({A()}, 0);
  a_ = {{0, 0}};
  Look({A(true)}, 1);
  EXPECT_THAT(At(1).nodes, ElementsAre(MigrationLook::Node{"a", 1, 1}));
  Look({A(true)}, 2);
  EXPECT_EQ(At(2).bytes, 100u);
}

TEST_F(MigrationProgressTest, NodesThatAreAwayDoNotCountUntilTheyAreBack) {
  Look({A(), B()}, 0);
  b_ = {{0, 2}};
  Look({A(), B()}, 1);
  Look({A()}, 2);
  EXPECT_THAT(At(2).nodes, ElementsAre(MigrationLook::Node{"a", 3, 0}));
  Look({A(), B()}, 3);
  EXPECT_THAT(At(3).nodes,
              ElementsAre(MigrationLook::Node{"a", 3, 0}, MigrationLook::Node{"b", 3, 1}));
}

TEST_F(MigrationProgressTest, ANewPlanIsCountedAnew) {
  Look({A()}, 0);
  a_ = {{0, 0}, {0, 1}};
  Look({A()}, 5);
  plan_.epoch = 8;
  Look({A()}, 9);
  EXPECT_THAT(At(9).nodes, ElementsAre(MigrationLook::Node{"a", 1, 0}));
  EXPECT_EQ(At(10).seconds, 1);
  a_.insert({1, 0});
  plan_.epoch = 9;
  Look({A()}, 11);
  EXPECT_THAT(At(11).nodes, IsEmpty()) << "it holds all, so nothing was to come";
}

}  // namespace
}  // namespace troupe
