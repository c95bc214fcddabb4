#include "sim/replay/optimum_replay.h"

#include <gtest/gtest.h>

#include "sim/replay/replay_for_test.h"
#include "testing/test_seed.h"
#include "trace/trace_for_test.h"

namespace troupe {
namespace {

using OptimumReplayTest = ReplayedTrace;

// Passes of a prompt ask for more than a layer's share, and with few slots for more than all.
TEST_F(OptimumReplayTest, NoPolicyBeatsItOnPassesOfManyTokensHoweverSlotsAreShared) {
  Rng rng(TestSeed());
  for (int round = 0; round < 2; ++round) {
    const TraceHeader header = TestTraceHeader(false);
    Write(header, RandomBlock(header, {{.tokens = 120}}, rng));
    for (const std::uint32_t group : {1u, 2u, 5u, 30u}) {
      for (const std::uint32_t slots : {1u, 2u, 4u, 7u, 12u, 20u, 31u}) {
        for (const ReplaySpec& of :
             {ReplaySpec{.per_layer = false}, ReplaySpec{.per_layer = false, .floor = 0.6},
              ReplaySpec{}, ReplaySpec{.spare = 2}, ReplaySpec{.shallow = 1}}) {
          std::vector<ReplaySpec> specs;
          for (const char* policy : {"optimum", "lru", "lfu", "arc", "echo"}) {
            specs.push_back(of);
            specs.back().policy = policy;
            specs.back().slots = slots;
          }
          const auto outcomes = Run(specs, {.group = group});
          const ReplayResult& optimum = outcomes.front().result;
          for (const ReplayOutcome& outcome : outcomes) {
            EXPECT_LE(outcome.result.all.hits, optimum.all.hits)
                << outcome.spec.policy << ", slots " << slots << ", group " << group << ", spare "
                << of.spare << ", shallow " << of.shallow << ", by layer " << of.per_layer;
            EXPECT_EQ(outcome.result.all.asks, optimum.all.asks);
            EXPECT_EQ(outcome.result.loads, outcome.result.all.asks - outcome.result.all.hits);
          }
        }
      }
    }
  }
}

TEST_F(OptimumReplayTest, CountsBytesAndLayersAsTheReplayOfACacheDoes) {
  const TraceHeader header{
      .model = "m", .layers = 1, .moe_layers = {0}, .experts = 5, .top_k = 2, .expert_bytes = {10}};
  Write(
      header,
      {.domains = {""}, .segments = {{.tokens = 4}}, .tokens = 4, .ids = {0, 1, 2, 3, 0, 1, 2, 3}});
  const ReplayResult alone = RunOne({.policy = "optimum", .slots = 3});
  // One of 0 and 1 stays through 2 and 3, and one of those through 0 and 1.
  EXPECT_EQ(alone.all.hits, 2u);
  EXPECT_EQ(alone.loads, 6u);
  EXPECT_EQ(alone.bytes, 60u);
  EXPECT_EQ(alone.layers[0].hits, 2u);
  EXPECT_EQ(alone.prefill.tokens, 4u);
  EXPECT_EQ(alone.crowded, 0u);
  // Four at once in three slots: three of them can be there the next time.
  const ReplayResult together = RunOne({.policy = "optimum", .slots = 3}, {.group = 2});
  EXPECT_EQ(together.all.hits, 3u);
  EXPECT_EQ(together.crowded, 2u);
  EXPECT_EQ(together.stall_seconds, 0);
}

TEST_F(OptimumReplayTest, WhereASecondLaneAnswersMissesTheyNeedNoSlots) {
  const TraceHeader header{.model = "m", .layers = 1, .moe_layers = {0}, .experts = 3, .top_k = 1};
  Write(header,
        {.domains = {""}, .segments = {{.tokens = 5}}, .tokens = 5, .ids = {0, 1, 2, 0, 1}});
  ReplayOptions options{.group = 1};
  EXPECT_EQ(RunOne({.policy = "optimum", .slots = 2}, options).all.hits, 1u);
  options.costs.second_lane_seconds = 0.1;
  EXPECT_EQ(RunOne({.policy = "optimum", .slots = 2}, options).all.hits, 2u);
}

}  // namespace
}  // namespace troupe
