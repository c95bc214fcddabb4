// The second lane in replays: what it takes from the link, and that a layer ends with the later of
// the two.
#include <gtest/gtest.h>

#include "expert/cache/lru.h"
#include "sim/replay/cache_replay.h"

namespace troupe {
namespace {

constexpr double kLoad = 0.010;

// One layer of eight experts; a token chooses four, the first weighs most.
class SecondLane : public testing::Test {
 protected:
  ReplayResult Play(std::optional<double> other, std::uint32_t passes = 1) {
    TraceHeader header;
    header.layers = 1;
    header.experts = 8;
    header.top_k = 4;
    header.moe_layers = {0};
    CacheReplay replay(header, {.cache = {.grid = header.grid(), .slots = 8, .quotas = {}},
                                .policy = std::make_unique<Lru>(header.grid()),
                                .costs = {.load_seconds = {kLoad},
                                          .expert_first_seconds = compute_,
                                          .second_lane_seconds = other}});
    for (std::uint32_t i = 0; i < passes; ++i) {
      replay.Play({.tokens = 1,
                   .phase = TracePhase::kDecode,
                   .demands = {{{.expert = 1, .tokens = 1},
                                {.expert = 3, .tokens = 1},
                                {.expert = 5, .tokens = 1},
                                {.expert = 6, .tokens = 1}}},
                   .routes = {{.chosen = {{5, 0.4f}, {3, 0.3f}, {6, 0.2f}, {1, 0.1f}}}}});
    }
    resident_.clear();
    for (std::uint32_t e = 0; e < 8; ++e) {
      if (replay.cache().Find({0, e}) == Residence::kResident) resident_.push_back(e);
    }
    return replay.result();
  }

  double compute_ = 0;
  std::vector<std::uint32_t> resident_;
};

TEST_F(SecondLane, WithoutOneEveryMissIsLoaded) {
  const ReplayResult result = Play(std::nullopt);
  EXPECT_EQ(result.loads, 4u);
  EXPECT_EQ(result.elsewhere, 0u);
  EXPECT_DOUBLE_EQ(result.stall_seconds, 4 * kLoad);
}

TEST_F(SecondLane, TakesTheLightestMissesUntilBothLanesEndTogether) {
  // Three loads and one computed where it lies, 30 ms each.
  const ReplayResult result = Play(3 * kLoad);
  EXPECT_EQ(result.loads, 3u);
  EXPECT_EQ(result.elsewhere, 1u);
  EXPECT_DOUBLE_EQ(result.stall_seconds, 3 * kLoad);
  EXPECT_EQ(resident_, (std::vector<std::uint32_t>{3, 5, 6}));
}

TEST_F(SecondLane, ALayerEndsWithTheLaterLane) {
  // Two and two: 20 ms of loads, 22 ms on the other lane.
  const ReplayResult result = Play(1.1 * kLoad);
  EXPECT_EQ(result.elsewhere, 2u);
  EXPECT_DOUBLE_EQ(result.stall_seconds, 2.2 * kLoad);
}

TEST_F(SecondLane, TakesNothingWhereItIsSlowerThanAllLoads) {
  EXPECT_EQ(Play(5 * kLoad).elsewhere, 0u);
}

TEST_F(SecondLane, TakesEverythingWhereItIsFree) {
  const ReplayResult result = Play(0, 3);
  EXPECT_EQ(result.loads, 0u);
  EXPECT_EQ(result.elsewhere, 12u);
  EXPECT_DOUBLE_EQ(result.stall_seconds, 0);
  EXPECT_EQ(result.cache.misses, 12u);
}

TEST_F(SecondLane, TakesNothingWhereComputingDuringLoadsEndsSooner) {
  // Four loads of 10 ms, each computed in 5 ms while the next one is loaded: 45 ms.
  compute_ = kLoad / 2;
  const ReplayResult result = Play(5 * kLoad);
  EXPECT_EQ(result.elsewhere, 0u);
  EXPECT_DOUBLE_EQ(result.Seconds(), 4.5 * kLoad);
  EXPECT_EQ(Play(4.4 * kLoad).elsewhere, 1u);
}

TEST_F(SecondLane, TakesAMissThatWouldBeComputedOnlyAfterTheResidents) {
  // In the second pass 3, 5 and 6 are resident, and computing them takes 30 ms. The fourth can be
  // loaded in that time, but would be computed after them.
  compute_ = kLoad;
  EXPECT_EQ(Play(3 * kLoad, 1).elsewhere, 1u);
  EXPECT_EQ(Play(3 * kLoad, 2).elsewhere, 2u);
  EXPECT_EQ(resident_, (std::vector<std::uint32_t>{3, 5, 6}));
}

TEST_F(SecondLane, CountsTheBytesOfLoadsAlone) {
  TraceHeader header;
  header.layers = 1;
  header.experts = 8;
  header.top_k = 4;
  header.moe_layers = {0};
  header.expert_bytes = {100};
  CacheReplay replay(
      header,
      {.cache = {.grid = header.grid(), .slots = 8, .quotas = {}},
       .policy = std::make_unique<Lru>(header.grid()),
       .costs = {.load_seconds = {kLoad}, .expert_bytes = {7}, .second_lane_seconds = 3 * kLoad}});
  replay.Play({.tokens = 1,
               .demands = {{{.expert = 1, .tokens = 1}, {.expert = 2, .tokens = 1}}},
               .routes = {{.chosen = {{1, 0.6f}, {2, 0.4f}}}}});
  EXPECT_EQ(replay.result().bytes, 2 * 7u);
}

}  // namespace
}  // namespace troupe
