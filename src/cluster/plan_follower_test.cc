#include "cluster/plan_follower.h"

#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

constexpr ExpertGrid kFollowedGrid{.layers = 1, .experts = 4};

class PlanFollowing : public testing::Test {
 protected:
  static ClusterPlan Plan(std::uint64_t epoch, std::vector<std::uint32_t> own,
                          std::vector<std::uint32_t> other = {}) {
    ClusterPlan plan{.epoch = epoch, .nodes = {{.name = "b", .held = {std::move(other)}}}};
    if (!own.empty())
      plan.nodes.insert(plan.nodes.begin(), {.name = "a", .held = {std::move(own)}});
    return plan;
  }

  // Another node holds them by that plan.
  void Elsewhere(std::uint64_t epoch, std::set<ExpertId> held) {
    epoch_ = epoch;
    elsewhere_ = ExpertBits(kFollowedGrid);
    for (const ExpertId id : held) elsewhere_.Add(id);
  }

  std::uint64_t epoch_ = 0;
  ExpertBits elsewhere_{kFollowedGrid};
  PlanFollower follower_{{.node = "a", .grid = kFollowedGrid, .most_held = 2, .held = {1, 0, 0, 0}},
                         [this](const ClusterPlan& plan) {
                           return std::vector{OtherNode{.name = "b",
                                                        .here = true,
                                                        .awaited = true,
                                                        .epoch = epoch_,
                                                        .held = &elsewhere_,
                                                        .planned = plan.Find("b")}};
                         }};
};

TEST_F(PlanFollowing, OneStepAtATimeLeadsToThePlan) {
  EXPECT_EQ(follower_.TakeStep(), std::nullopt);
  follower_.Adopt(Plan(1, {0, 2}));
  EXPECT_FALSE(follower_.settled());
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(HoldStep{0, {2}}));
  EXPECT_EQ(follower_.TakeStep(), std::nullopt);  // it is under way
  follower_.OnHeld({1, 0, 1, 0}, true);
  EXPECT_TRUE(follower_.settled());
  EXPECT_EQ(follower_.sequence(), 2u);
}

TEST_F(PlanFollowing, WhatIsToGoIsNoMoreAmongTheHoldingsBeforeItGoes) {
  follower_.Adopt(Plan(1, {2, 3}));
  follower_.OnHeld({1, 0, 1, 0}, true);
  const std::uint64_t before = follower_.sequence();
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(ReleaseStep{{0, 0}}));
  EXPECT_FALSE(follower_.Holdings().held.Has({0, 0}));
  EXPECT_TRUE(follower_.Holdings().held.Has({0, 2}));
  EXPECT_EQ(follower_.sequence(), before + 1);
}

TEST_F(PlanFollowing, WhatAnotherIsToHoldStaysUntilThatHoldsIt) {
  follower_.Adopt(Plan(1, {1, 2}, {0}));
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(HoldStep{0, {1}}));
  follower_.OnHeld({1, 1, 0, 0}, true);
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(HoldStep{0, {2}}));  // with the slot for swaps
  follower_.OnHeld({1, 1, 1, 0}, true);
  EXPECT_EQ(follower_.TakeStep(), std::nullopt);
  EXPECT_FALSE(follower_.settled());
  Elsewhere(1, {{0, 0}});
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(ReleaseStep{{0, 0}}));
}

TEST_F(PlanFollowing, APlanThatExceedsTheMemoryIsNotCarriedOut) {
  follower_.Adopt(Plan(1, {0, 1, 2}));
  ASSERT_TRUE(follower_.TakeStep());
  follower_.OnHeld({1, 1, 0, 0}, true);
  EXPECT_EQ(follower_.TakeStep(), std::nullopt);
  EXPECT_FALSE(follower_.settled());
  follower_.Adopt(Plan(2, {0, 1}));
  EXPECT_TRUE(follower_.settled());
}

TEST_F(PlanFollowing, AStepThatFailedIsTriedAgainAfterAWhile) {
  follower_.Adopt(Plan(1, {0, 2}));
  ASSERT_TRUE(follower_.TakeStep());
  follower_.OnHeld({1, 0, 0, 0}, false);
  EXPECT_EQ(follower_.TakeStep(), std::nullopt);
  EXPECT_FALSE(follower_.OnTime(0));
  EXPECT_FALSE(follower_.OnTime(29'000'000'000));
  EXPECT_TRUE(follower_.OnTime(30'000'000'000));
  EXPECT_TRUE(follower_.TakeStep());
}

TEST_F(PlanFollowing, ANewPlanDoesNotWaitForWhatTheOldOneFailedAt) {
  follower_.Adopt(Plan(1, {0, 2}));
  ASSERT_TRUE(follower_.TakeStep());
  follower_.Adopt(Plan(2, {0, 3}));
  follower_.OnHeld({1, 0, 0, 0}, false);
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(HoldStep{0, {3}}));
}

TEST_F(PlanFollowing, ADrainedNodeKeepsWhatAnotherIsToHoldUntilThatHoldsIt) {
  follower_.Adopt(Plan(1, {0}));
  follower_.Drain();
  EXPECT_EQ(follower_.TakeStep(), std::nullopt);  // that plan still counts on it
  follower_.Adopt(Plan(2, {}, {0}));
  EXPECT_EQ(follower_.TakeStep(), std::nullopt);
  Elsewhere(1, {{0, 0}});
  EXPECT_EQ(follower_.TakeStep(), std::nullopt);  // by a plan under which it may let it go
  Elsewhere(2, {{0, 0}});
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(ReleaseStep{{0, 0}}));
}

}  // namespace
}  // namespace troupe
