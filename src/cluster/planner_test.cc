#include "cluster/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe {
namespace {

constexpr ExpertGrid kPlannedGrid{.layers = 2, .experts = 8};
constexpr std::uint64_t kExpertBytes = 1 << 20;

// Of one who wants the lower half of each layer's experts, or the upper one.
PeerReport ReportOfOne(bool lower, NodeMeasures measured) {
  PeerReport report{.seconds = 10,
                    .grid = kPlannedGrid,
                    .activations = std::vector<std::uint32_t>(kPlannedGrid.Count()),
                    .expert_memory = Bytes(kPlannedGrid.Count() / 2 * kExpertBytes),
                    .measured = std::move(measured)};
  for (std::uint32_t layer = 0; layer < kPlannedGrid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < kPlannedGrid.experts; ++expert) {
      const bool wants = (expert < kPlannedGrid.experts / 2) == lower;
      report.activations[kPlannedGrid.Index({layer, expert})] = wants ? 100 : 1;
    }
  }
  return report;
}

// What a leader decides once users ask what others asked before, by what nodes have measured.
bool FollowsAChange(const NodeMeasures& measured, std::optional<double> round_trip = std::nullopt,
                    bool experts_travel = false) {
  Planner planner(
      {.grid = kPlannedGrid, .expert_bytes = kExpertBytes, .experts_travel = experts_travel}, {});
  const std::vector<Planner::Present> present = {
      {.name = "a", .round_trip_seconds = {}, .held = {}},
      {.name = "b", .round_trip_seconds = round_trip, .held = {}}};
  planner.Begin(0, std::nullopt);
  planner.OnReport("a", ReportOfOne(true, measured));
  planner.OnReport("b", ReportOfOne(false, measured));
  const auto choose = [&](const std::optional<ClusterPlan>& current) {
    return ChoosePlan(planner.Job(present, current).value()).value();
  };
  const PlanChoice first = choose(std::nullopt);
  EXPECT_TRUE(first.adoption.adopt());
  for (int i = 0; i < 20; ++i) {
    planner.OnReport("a", ReportOfOne(false, measured));
    planner.OnReport("b", ReportOfOne(true, measured));
  }
  return choose(first.plan).adoption.adopt();
}

// 16 experts go and 16 come, each of 1 MiB: 32 MiB. About 16,000 rows more are at home then.
TEST(Planner, AMoveIsWeighedWithTheDiskAndWithWhatARowTakesLongerElsewhere) {
  NodeMeasures measured{.disk_bytes_per_second = 1e8, .seconds_a_remote_row = 1e-3, .links = {}};
  EXPECT_TRUE(FollowsAChange(measured));
  measured.disk_bytes_per_second = 1e6;
  EXPECT_FALSE(FollowsAChange(measured)) << "a disk that is a hundred times as slow";
  measured.seconds_a_remote_row = 1e-1;
  EXPECT_TRUE(FollowsAChange(measured)) << "rows that take a hundred times as long";
}

// Ten minutes of one workload, then a minute of the other.
TEST(Planner, WhoPlansOftenFollowsAChangeSooner) {
  const NodeMeasures measured{
      .disk_bytes_per_second = 1e9, .seconds_a_remote_row = 1e-3, .links = {}};
  const auto follows = [&](Nanos plan_every) {
    Planner planner({.grid = kPlannedGrid, .expert_bytes = kExpertBytes},
                    {.plan_every = plan_every});
    const std::vector<Planner::Present> present = {{.name = "a", .round_trip_seconds = {}},
                                                   {.name = "b", .round_trip_seconds = {}}};
    planner.Begin(0, std::nullopt);
    const auto report = [&](bool lower, int times) {
      for (int i = 0; i < times; ++i) {
        planner.OnReport("a", ReportOfOne(lower, measured));
        planner.OnReport("b", ReportOfOne(!lower, measured));
      }
    };
    report(true, 60);
    const PlanChoice first = ChoosePlan(planner.Job(present, std::nullopt).value()).value();
    report(false, 6);
    return ChoosePlan(planner.Job(present, first.plan).value())->adoption.adopt();
  };
  EXPECT_TRUE(follows(15'000'000'000));
  EXPECT_FALSE(follows(300'000'000'000)) << "ten minutes weigh more than one";
}

// Half of the 32 MiB come, which takes the link's time then.
TEST(Planner, AMoveIsWeighedWithTheLinksByWhichExpertsMayCome) {
  NodeMeasures measured{.disk_bytes_per_second = 1e6, .seconds_a_remote_row = 1e-3, .links = {}};
  measured.links = {{.peer = "a", .round_trip_seconds = 1e-4, .bytes_per_second = 1e8},
                    {.peer = "b", .round_trip_seconds = 1e-4, .bytes_per_second = 1e8}};
  EXPECT_TRUE(FollowsAChange(measured, std::nullopt, /*experts_travel=*/true));
  EXPECT_FALSE(FollowsAChange(measured)) << "no checksum is known, so each reads its disk";
  for (NodeMeasures::Link& link : measured.links) link.bytes_per_second = 4e5;
  EXPECT_FALSE(FollowsAChange(measured, std::nullopt, true)) << "links slower than half the disk";
  for (NodeMeasures::Link& link : measured.links) link.bytes_per_second = 0;
  EXPECT_FALSE(FollowsAChange(measured, std::nullopt, true)) << "nothing was measured";
}

// Of three nodes two have a link that is a thousand times as slow as the others.
TEST(Planner, APairOfNodesHasTheLinkThatItHasMeasured) {
  Planner planner({.grid = kPlannedGrid, .expert_bytes = kExpertBytes}, {});
  planner.Begin(0, std::nullopt);
  std::vector<Planner::Present> present;
  for (const std::string name : {"a", "b", "c", "d"}) {
    NodeMeasures measured{.disk_bytes_per_second = 1e8, .links = {}};
    for (const std::string other : {"a", "b", "c"}) {
      if (name == other || name == "d") continue;
      const bool slow = name != "c" && other != "c";
      measured.links.push_back({.peer = other,
                                .round_trip_seconds = slow ? 1e-1 : 1e-4,
                                .bytes_per_second = slow ? 1e5 : 1e8});
    }
    planner.OnReport(name, ReportOfOne(true, measured));
    present.push_back({.name = name, .round_trip_seconds = {}, .held = {}});
  }
  const PlanFacts facts = planner.Job(present, std::nullopt).value().facts;
  const LinkTable links = ProblemOf(facts).links;
  const auto between = [&](std::uint32_t from, std::uint32_t to) {
    return links.Between(from, to).bytes_per_second;
  };
  EXPECT_DOUBLE_EQ(between(0, 1), 1e5);
  EXPECT_DOUBLE_EQ(between(1, 0), 1e5);
  EXPECT_DOUBLE_EQ(between(0, 2), 1e8);
  EXPECT_DOUBLE_EQ(between(2, 1), 1e8);
  EXPECT_DOUBLE_EQ(links.Between(0, 1).latency_seconds, 1e-1);
  // Who has measured nothing has the average of all.
  EXPECT_NEAR(between(0, 3), (4 * 1e8 + 2 * 1e5) / 6, 1);
}

TEST(Planner, BeforeAnybodyHasAskedAPeerTheLinksRoundTripStandsForIt) {
  NodeMeasures measured{.disk_bytes_per_second = 1e6, .links = {}};
  EXPECT_FALSE(FollowsAChange(measured, 1e-4));
  EXPECT_TRUE(FollowsAChange(measured, 1e-1));
  measured.links = {{.peer = "b", .round_trip_seconds = 1e-4, .bytes_per_second = 1e8}};
  EXPECT_FALSE(FollowsAChange(measured, 1e-1)) << "what calls measured counts for more";
}

TEST(Planner, TheLastNodeThatAPlanDidWithoutIsPlannedWithOnceItTellsOfItselfAgain) {
  const PlannerRules rules;
  Planner planner({.grid = kPlannedGrid, .expert_bytes = kExpertBytes}, rules);
  planner.Begin(0, std::nullopt);
  planner.OnReport("a", ReportOfOne(true, {}));
  planner.OnReport("b", ReportOfOne(false, {}));
  planner.OnReport("c", ReportOfOne(false, {}));
  ASSERT_TRUE(planner.IsDue(0, 3, false));
  planner.OnReport("b", ReportOfOne(false, {}));
  EXPECT_FALSE(planner.IsDue(2 * rules.gather, 3, true)) << "it was there all the time";
  const std::vector<Planner::Present> without = {
      {.name = "a", .round_trip_seconds = {}, .held = {}}};
  planner.LeaveOut(without, std::nullopt);
  planner.OnReport("b", ReportOfOne(false, {}));
  EXPECT_FALSE(planner.IsDue(3 * rules.gather, 3, true)) << "the other one may come, too";
  EXPECT_TRUE(planner.IsDue(4 * rules.gather, 3, true));
  ClusterPlan plan;
  plan.nodes = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  planner.LeaveOut(without, plan);
  planner.OnReport("b", ReportOfOne(false, {}));
  planner.OnReport("c", ReportOfOne(false, {}));
  EXPECT_TRUE(planner.IsDue(5 * rules.gather, 3, true));
}

TEST(Planner, WhatNodesHaveToldIsForgottenOnceTheyAreNeitherThereNorInThePlan) {
  Planner planner({.grid = kPlannedGrid, .expert_bytes = kExpertBytes}, {});
  planner.Begin(0, std::nullopt);
  const std::vector<Planner::Present> one = {{.name = "a", .round_trip_seconds = {}, .held = {}}};
  std::vector<Planner::Present> both = one;
  both.push_back({.name = "b", .round_trip_seconds = {}, .held = {}});
  for (const Planner::Present& node : both) planner.OnReport(node.name, ReportOfOne(true, {}));
  const auto planned = [&] { return planner.Job(both, std::nullopt).value().facts.nodes.size(); };
  ClusterPlan plan;
  plan.nodes = {{.name = "a"}, {.name = "b"}};
  planner.LeaveOut(one, plan);
  EXPECT_EQ(planned(), 2u) << "it is away, and the plan has it";
  plan.nodes.pop_back();
  planner.LeaveOut(both, plan);
  EXPECT_EQ(planned(), 2u) << "it is there, and the next plan may have it";
  planner.LeaveOut(one, plan);
  EXPECT_EQ(planned(), 1u);
}

// One that hangs, or starts anew, when a leader dies is not planned out by the next one.
TEST(Planner, ANewLeaderWaitsForThoseOfThePlanInForce) {
  const PlannerRules rules;
  Planner planner({.grid = kPlannedGrid, .expert_bytes = kExpertBytes}, rules);
  ClusterPlan plan;
  plan.nodes = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  planner.Begin(0, plan);
  planner.OnReport("a", ReportOfOne(true, {}));
  planner.OnReport("b", ReportOfOne(false, {}));
  planner.OnReport("newcomer", ReportOfOne(false, {}));
  EXPECT_FALSE(planner.IsDue(2 * rules.gather, 4, true));
  planner.PlanNow(2 * rules.gather);
  EXPECT_EQ(planner.Awaits(2 * rules.gather), std::vector<std::string>{"c"});
  EXPECT_EQ(planner.awaited_until(), rules.forget_after);
  EXPECT_FALSE(planner.IsDue(rules.forget_after - 1, 4, true));
  EXPECT_TRUE(planner.IsDue(rules.forget_after, 4, true)) << "c does not come back";
  EXPECT_TRUE(planner.Awaits(rules.forget_after).empty());
  planner.Begin(0, plan);
  for (const char* name : {"a", "b", "c"}) planner.OnReport(name, ReportOfOne(true, {}));
  EXPECT_FALSE(planner.IsDue(1, 3, true));
  EXPECT_TRUE(planner.IsDue(1 + rules.gather, 3, true));
}

}  // namespace
}  // namespace troupe
