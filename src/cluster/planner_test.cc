#include "cluster/planner.h"

#include <gtest/gtest.h>

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
bool FollowsAChange(const NodeMeasures& measured, std::optional<double> round_trip = std::nullopt) {
  Planner planner({.grid = kPlannedGrid, .expert_bytes = kExpertBytes}, {});
  const std::vector<Planner::Present> present = {{.name = "a", .round_trip_seconds = {}},
                                                 {.name = "b", .round_trip_seconds = round_trip}};
  planner.Begin(0, /*has_plan=*/false);
  planner.OnReport("a", ReportOfOne(true, measured));
  planner.OnReport("b", ReportOfOne(false, measured));
  const std::optional<ClusterPlan> first = planner.Plan(present, std::nullopt, 1).value();
  EXPECT_TRUE(first);
  for (int i = 0; i < 20; ++i) {
    planner.OnReport("a", ReportOfOne(false, measured));
    planner.OnReport("b", ReportOfOne(true, measured));
  }
  return planner.Plan(present, first, 2).value().has_value();
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

TEST(Planner, BeforeAnybodyHasAskedAPeerTheLinksRoundTripStandsForIt) {
  NodeMeasures measured{.disk_bytes_per_second = 1e6, .links = {}};
  EXPECT_FALSE(FollowsAChange(measured, 1e-4));
  EXPECT_TRUE(FollowsAChange(measured, 1e-1));
  measured.links = {{.peer = "b", .round_trip_seconds = 1e-4, .bytes_per_second = 1e8}};
  EXPECT_FALSE(FollowsAChange(measured, 1e-1)) << "what calls measured counts for more";
}

}  // namespace
}  // namespace troupe
