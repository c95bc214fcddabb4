#include "cluster/plan/adoption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/plan/coming_speed.h"
#include "cluster/plan/planned_nodes_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Why = Adoption::Why;

Adoption Decide(const PlanFacts& facts, const ClusterPlan& from, double seconds_per_remote_call) {
  return DecideAdoption(facts, &from, PlanOf(facts), seconds_per_remote_call);
}

// Users of each node want what those of the other wanted.
PlanFacts Changed(PlanFacts facts) {
  std::swap(facts.nodes[0].activations, facts.nodes[1].activations);
  return facts;
}

TEST(Adoption, TheFirstPlanIsAdopted) {
  const PlanFacts facts = TwoPlannedNodes(8);
  EXPECT_EQ(DecideAdoption(facts, nullptr, PlanOf(facts), 0).why, Why::kFirst);
}

TEST(Adoption, AChangePaysIfItSavesMoreThanMovingTakes) {
  const ClusterPlan from = PlanOf(TwoPlannedNodes(8));
  const PlanFacts facts = Changed(TwoPlannedNodes(8));
  ASSERT_NE(from.nodes, PlanOf(facts).nodes);
  const Adoption pays = Decide(facts, from, 1e-3);
  EXPECT_EQ(pays.why, Why::kPays);
  EXPECT_TRUE(pays.adopt());
  EXPECT_LT(pays.eq4.seconds_after + pays.eq4.migration_seconds, pays.eq4.seconds_now);
  EXPECT_THAT(ToString(pays), HasSubstr("Eq. 4"));
  const Adoption does_not = Decide(facts, from, 1e-12);
  EXPECT_EQ(does_not.why, Why::kDoesNotPay);
  EXPECT_FALSE(does_not.adopt());
  EXPECT_GT(does_not.eq4.migration_seconds, 0);
  EXPECT_EQ(Decide(facts, PlanOf(facts), 1).why, Why::kSame);
}

// 16 experts of 1,000 bytes come, and as many go, which takes the disk's time by Eq. 3.
TEST(Adoption, AnExpertThatAPeerHoldsComesAsFastAsHalfOfALinkThatGivesEnough) {
  const ClusterPlan from = PlanOf(TwoPlannedNodes(8));
  PlanFacts facts = Changed(TwoPlannedNodes(8));
  for (NodeFacts& node : facts.nodes) node.load_bytes_per_second = 1e4;
  const auto seconds = [&](double link) {
    facts.fetch_bytes_per_second.clear();
    if (link > 0) facts.fetch_bytes_per_second[{0, 1}] = link;
    return Decide(facts, from, 1e-3).eq4.migration_seconds;
  };
  const double by_disk = seconds(0);
  EXPECT_GT(by_disk, 0);
  EXPECT_DOUBLE_EQ(seconds(1e6), by_disk / 2 + by_disk / 2 * 1e4 / 5e5);
  EXPECT_DOUBLE_EQ(seconds(1e4), by_disk) << "half of that is no faster than the disk";
  EXPECT_DOUBLE_EQ(seconds(4e3), by_disk) << "too slow a link";
  const PlacementProblem problem = ProblemOf(facts);
  facts.fetch_bytes_per_second[{0, 1}] = 1e6;
  EXPECT_EQ(ComingSpeedOf(facts, problem, Placement::Empty(problem))(0, 0), 1e4)
      << "nobody holds it";
}

// That of the others is none of it.
TEST(Adoption, OnlyAHoldersLinkCounts) {
  PlanFacts facts = TwoPlannedNodes(8);
  facts.nodes.push_back(facts.nodes[0]);
  for (NodeFacts& node : facts.nodes) node.load_bytes_per_second = 1e4;
  facts.fetch_bytes_per_second = {{{0, 1}, 1e6}, {{0, 2}, 2e6}};
  const PlacementProblem problem = ProblemOf(facts);
  Placement held = Placement::Empty(problem);
  held.experts[1][0] = {3, 4};
  held.experts[2][0] = {4};
  const ComingSpeed speed = ComingSpeedOf(facts, problem, held);
  EXPECT_EQ(speed(0, 3), 5e5);
  EXPECT_EQ(speed(0, 4), 1e6);
  EXPECT_EQ(speed(0, 5), 1e4);
  EXPECT_EQ(speed(2, 3), 1e4);
}

TEST(Adoption, WhatComesToLieOnDisksAloneCostsNoMove) {
  const ClusterPlan from = PlanOf(TwoPlannedNodes(6));
  const PlanFacts facts = Changed(TwoPlannedNodes(6));
  ASSERT_NE(from.nodes, PlanOf(facts).nodes);
  ASSERT_EQ(ProblemOf(facts).servers.size(), 3u);
  EXPECT_EQ(Decide(facts, from, 1e-3).why, Why::kPays);
}

TEST(Adoption, APlanOfOtherNodesNeverStays) {
  PlanFacts facts = TwoPlannedNodes(8);
  const ClusterPlan from = PlanOf(facts);
  facts.nodes.push_back(facts.nodes[0]);
  facts.nodes[2].name = "c";
  EXPECT_EQ(Decide(facts, from, 1e-12).why, Why::kOtherNodes);
}

TEST(Adoption, APlanThatExceedsANodesMemoryNeverStaysHoweverDearAMoveIs) {
  PlanFacts facts = TwoPlannedNodes(8);
  const ClusterPlan from = PlanOf(facts);
  facts.nodes[1].most_held = 5;
  const Adoption adoption = Decide(facts, from, 1e-12);
  EXPECT_EQ(adoption.why, Why::kTooMuch);
  EXPECT_EQ(adoption.node, "b");
  EXPECT_TRUE(adoption.adopt());
}

TEST(Adoption, MemoryThatHasComeIsUsedHoweverDearAMoveIs) {
  PlanFacts facts = TwoPlannedNodes(4);
  const ClusterPlan from = PlanOf(facts);
  for (NodeFacts& node : facts.nodes) node.most_held = 8;
  const Adoption adoption = Decide(facts, from, 1e-12);
  EXPECT_EQ(adoption.why, Why::kCopiesLacking);
  EXPECT_EQ(adoption.lacking, 8u);
  EXPECT_EQ(adoption.still_lacking, 0u);
}

TEST(Adoption, APlanWithoutTheCopiesThatAreDemandedNeverStaysAndOneWithThemDoes) {
  PlanFacts facts = TwoPlannedNodes(12);
  const ClusterPlan single = PlanOf(TwoPlannedNodes(8));
  facts.copies = 2;
  const Adoption adoption = Decide(facts, single, 1e-12);
  EXPECT_EQ(adoption.why, Why::kCopiesLacking);
  EXPECT_EQ(adoption.lacking, 16u);
  EXPECT_EQ(adoption.still_lacking, 8u);  // there is room for 24 of 32
  EXPECT_FALSE(Decide(Changed(facts), PlanOf(facts), 1e-12).adopt());
}

}  // namespace
}  // namespace troupe
