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

// Here it is "a" that looks, so the other one has to come before it.
class Resting : public testing::Test {
 protected:
  static constexpr std::uint64_t kEpoch = 3;
  void Others(std::set<std::uint32_t> held) {
    elsewhere_ = ExpertBits(kFollowedGrid);
    for (const std::uint32_t expert : held) elsewhere_.Add({0, expert});
  }
  Resting() {
    follower_.Adopt(
        {.epoch = kEpoch,
         .nodes = {{.name = "a", .held = {{0, 1, 2}}}, {.name = "b", .held = {{0, 1, 3}}}}});
  }

  ExpertBits elsewhere_{kFollowedGrid};
  PlanFollower follower_{{.node = "b", .grid = kFollowedGrid, .most_held = 3, .held = {1, 1, 0, 1}},
                         [this](const ClusterPlan& plan) {
                           return std::vector{OtherNode{.name = "a",
                                                        .here = true,
                                                        .awaited = true,
                                                        .epoch = kEpoch,
                                                        .held = &elsewhere_,
                                                        .planned = plan.Find("a")}};
                         }};
};

TEST_F(Resting, WhatOthersHoldAndIsLittleUsedGivesUpItsSlotAndNothingElse) {
  Others({0, 1, 2});
  EXPECT_TRUE(follower_.settled());
  follower_.Rest({9, 1, 0, 1});
  EXPECT_FALSE(follower_.settled());
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(ReleaseStep{{0, 1}}));
  EXPECT_FALSE(follower_.Holdings().held.Has({0, 1})) << "peers are told before it goes";
  follower_.OnHeld({1, 0, 0, 1}, true);
  EXPECT_EQ(follower_.TakeStep(), std::nullopt) << "0 is used, and 3 is the last copy";
  EXPECT_TRUE(follower_.settled());
  EXPECT_EQ(follower_.resting(), 1u);
  EXPECT_EQ(follower_.rested(), 1u);
}

TEST_F(Resting, ItComesBackWhereTheOtherCopyIsLostOrSharingPaysAgain) {
  for (const bool pays_again : {true, false}) {
    SCOPED_TRACE(pays_again);
    Others({0, 1, 2});
    follower_.Rest({9, 1, 0, 1});
    EXPECT_EQ(follower_.TakeStep(), HoldingStep(ReleaseStep{{0, 1}}));
    follower_.OnHeld({1, 0, 0, 1}, true);
    pays_again ? follower_.Rest({}) : Others({0, 2});
    EXPECT_EQ(follower_.TakeStep(), HoldingStep(HoldStep{0, {1}}));
    follower_.OnHeld({1, 1, 0, 1}, true);
    EXPECT_TRUE(follower_.settled());
    EXPECT_EQ(follower_.resting(), 0u);
  }
}

TEST_F(Resting, ANewPlanThatDoesNotWantItForgetsThatItRests) {
  Others({0, 1, 2});
  follower_.Rest({9, 1, 0, 1});
  EXPECT_EQ(follower_.TakeStep(), HoldingStep(ReleaseStep{{0, 1}}));
  follower_.OnHeld({1, 0, 0, 1}, true);
  follower_.Adopt({.epoch = kEpoch,
                   .nodes = {{.name = "a", .held = {{0, 1, 2}}}, {.name = "b", .held = {{0, 3}}}}});
  EXPECT_EQ(follower_.resting(), 0u);
  EXPECT_TRUE(follower_.settled());
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
