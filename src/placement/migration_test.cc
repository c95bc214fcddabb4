#include "placement/migration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/migration_order.h"
#include "placement/placer.h"
#include "placement/problems_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using Kind = MigrationStep::Kind;
using ::testing::ElementsAre;

TEST(MigrationTest, TakesTheTimeOfAllThatComesAndGoes) {
  PlacementProblem problem = SmallProblem({2, 2}, {{{1, 1, 1}}, {{1, 1, 1}}});
  problem.experts = ExpertTable({{1_B, 2_B, 4_B}});
  problem.servers[0].devices[0] = {.memory = 8, .load_bytes_per_second = 2};
  problem.servers[1].devices[0] = {.memory = 8, .load_bytes_per_second = 1};
  // Server 0 gives 1 and takes 2: (2 + 4) / 2. Server 1 takes 1: 2 / 1.
  EXPECT_EQ(MigrationSeconds(problem, {{{{0, 1}}, {{2}}}}, {{{{0, 2}}, {{1, 2}}}}), 5);
}

TEST(MigrationTest, IsAdoptedWhenItPaysWithinWhatWasCounted) {
  // Remote calls: 10 now, 2 after; two loads and two drops of 0.1 s each.
  const PlacementProblem problem = SmallProblem({1, 1}, {{{1, 5}}, {{5, 1}}});
  const Placement from{{{{0}}, {{1}}}}, to{{{{1}}, {{0}}}};
  const MigrationDecision pays = DecideMigration(problem, from, to, 0.1);
  EXPECT_DOUBLE_EQ(pays.seconds_now, 1);
  EXPECT_DOUBLE_EQ(pays.seconds_after, 0.2);
  EXPECT_DOUBLE_EQ(pays.migration_seconds, 0.4);
  EXPECT_TRUE(pays.adopt);
  EXPECT_FALSE(DecideMigration(problem, from, to, 0.04).adopt);
  EXPECT_FALSE(DecideMigration(problem, from, from, 0.1).adopt) << "nothing to move";
}

TEST(MigrationTest, WhatStaysOnAServerStaysOnItsDevice) {
  PlacementProblem problem = SmallProblem({0, 1}, {{{4, 3, 2, 1}}, {{0, 0, 0, 1}}});
  problem.servers[0].devices.assign(2, {.memory = 2, .load_bytes_per_second = 10});
  const Placement from{{{{1, 2}, {0, 3}}, {{3}}}};
  EXPECT_EQ(KeepDevices(problem, from, {{{{0, 2}, {1, 3}}, {{3}}}}), from);
  EXPECT_EQ(KeepDevices(problem, from, {{{{0, 2}, {1}}, {{3}}}}),
            (Placement{{{{1, 2}, {0}}, {{3}}}}));
}

TEST(MigrationTest, MovesWithinAServerWhereSizesLeaveNoOtherWay) {
  PlacementProblem problem = SmallProblem({0}, {{{1, 1, 1, 1}}});
  problem.experts = ExpertTable({{1_B, 1_B, 2_B, 2_B}});
  problem.servers[0].devices.assign(2, {.memory = 3, .load_bytes_per_second = 10});
  // Were 0 and 1 to stay where they are, 2 and 3 would not both fit.
  const Placement from{{{{0, 1}, {2}}}}, to{{{{0, 2}, {1, 3}}}};
  EXPECT_EQ(KeepDevices(problem, from, to), to);
}

TEST(MigrationOrderTest, LoadsBeforeItDropsTheLastCopy) {
  const PlacementProblem problem = SmallProblem({2, 2}, {{{1, 5}}, {{5, 1}}});
  const MigrationPlan plan = OrderMigration(problem, {{{{0}}, {{1}}}}, {{{{1}}, {{0}}}});
  EXPECT_THAT(
      plan.steps,
      ElementsAre(MigrationStep{Kind::kLoad, 0, 0, 1}, MigrationStep{Kind::kLoad, 1, 0, 0},
                  MigrationStep{Kind::kDrop, 0, 0, 0}, MigrationStep{Kind::kDrop, 1, 0, 1}));
}

TEST(MigrationOrderTest, SwapsThroughAThirdDeviceWhenBothAreFull) {
  const PlacementProblem problem = SmallProblem({1, 1, 1}, {{{1, 5}}, {{5, 1}}, {{0, 0}}});
  const MigrationPlan plan =
      OrderMigration(problem, {{{{0}}, {{1}}, {{}}}}, {{{{1}}, {{0}}, {{}}}});
  EXPECT_EQ(plan.result, (Placement{{{{1}}, {{0}}, {{}}}}));
  EXPECT_EQ(plan.staged, 1u);
}

TEST(MigrationOrderTest, ADuplicateGivesWayForTheTimeBeing) {
  const PlacementProblem problem =
      SmallProblem({1, 1, 1, 1}, {{{1, 5, 0}}, {{5, 1, 0}}, {{0, 0, 1}}, {{0, 0, 1}}});
  const MigrationPlan plan =
      OrderMigration(problem, {{{{0}}, {{1}}, {{2}}, {{2}}}}, {{{{1}}, {{0}}, {{2}}, {{2}}}});
  EXPECT_EQ(plan.result, (Placement{{{{1}}, {{0}}, {{2}}, {{2}}}}));
  EXPECT_EQ(plan.staged, 1u);
}

TEST(MigrationOrderTest, WithoutRoomAndDuplicatesNothingMoves) {
  const PlacementProblem problem = SmallProblem({1, 1}, {{{1, 5}}, {{5, 1}}});
  const Placement from{{{{0}}, {{1}}}};
  const MigrationPlan plan = OrderMigration(problem, from, {{{{1}}, {{0}}}});
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_EQ(plan.result, from);
  EXPECT_EQ(plan.undone, 2u);
}

// Does the steps one by one and says what they break. An expert that is being loaded takes memory
// from the first byte on and covers from the last one on.
std::string Replay(const PlacementProblem& problem, Placement state, const MigrationPlan& plan) {
  const auto at = [&](const MigrationStep& step) -> auto& {
    return state.experts[step.server][step.device];
  };
  for (const MigrationStep& step : plan.steps) {
    auto& device = at(step);
    const auto found = std::find(device.begin(), device.end(), step.expert);
    if (step.kind == Kind::kLoad) {
      if (found != device.end()) return "loads what is there";
      device.push_back(step.expert);
      std::uint64_t bytes = 0;
      for (const ExpertIndex e : device) bytes += problem.experts.BytesOf(e);
      if (bytes > problem.servers[step.server].devices[step.device].memory) return "no memory";
    } else {
      if (found == device.end()) return "drops what is not there";
      device.erase(found);
    }
    std::vector<bool> covered(problem.experts.size(), false);
    for (const auto& server : state.experts) {
      for (const auto& held : server) {
        for (const ExpertIndex e : held) covered[e] = true;
      }
    }
    if (std::find(covered.begin(), covered.end(), false) != covered.end()) return "uncovered";
  }
  for (auto& server : state.experts) {
    for (auto& device : server) std::sort(device.begin(), device.end());
  }
  return state == plan.result ? "" : "another result";
}

TEST(MigrationOrderTest, CoversAllExpertsWithinMemoryAtEveryStep) {
  Rng rng(TestSeed());
  int reached = 0, tried = 0;
  for (int i = 0; i < 600; ++i) {
    const PlacementProblem problem = RandomProblem(rng, {.equal_sizes = i % 3 != 0});
    const auto any = [&] {
      const auto names = PlacerNames();
      const auto name = names[rng.Below(names.size())];
      return MakePlacer(name, {.seed = rng.Next()}).value()->Place(problem);
    };
    const Result<Placement> from = any(), to = any();
    if (!from.ok() || !to.ok()) continue;
    const MigrationPlan plan = OrderMigration(problem, *from, *to);
    ASSERT_EQ(Replay(problem, *from, plan), "") << "in problem " << i;
    ASSERT_EQ(plan.undone == 0, plan.result == *to) << "in problem " << i;
    ++tried;
    reached += plan.undone == 0 ? 1 : 0;
  }
  EXPECT_GT(reached, tried * 9 / 10);
}

TEST(MigrationOrderTest, ReachesTheTargetWheneverOneSlotIsFree) {
  Rng rng(TestSeed());
  for (int i = 0; i < 300; ++i) {
    PlacementProblem problem = RandomProblem(rng, {.most_memory = 1.0001});
    const std::uint64_t each = *problem.experts.equal_bytes();
    problem.servers[0].devices[0].memory += each;
    const Placement from = MakeUniform(rng.Next())->Place(problem).value();
    const Placement to = MakeUniform(rng.Next())->Place(problem).value();
    const MigrationPlan plan = OrderMigration(problem, from, to);
    ASSERT_EQ(Replay(problem, from, plan), "") << "in problem " << i;
    ASSERT_EQ(plan.result, to) << "in problem " << i;
  }
}

}  // namespace
}  // namespace troupe
