#include "sim/replay/foreseen_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/replay/replay_for_test.h"
#include "testing/test_seed.h"
#include "trace/trace_for_test.h"

namespace troupe {
namespace {

class ForeseenLoadsTest : public ReplayedTrace {
 protected:
  // Tokens that choose one expert each in a model of one layer.
  void WriteOneLayer(std::vector<std::uint32_t> ids) {
    const auto tokens = static_cast<std::uint32_t>(ids.size());
    Write({.model = "m",
           .layers = 1,
           .moe_layers = {0},
           .experts = 8,
           .top_k = 1,
           .expert_bytes = {10}},
          {.domains = {""},
           .segments = {{.tokens = tokens}},
           .tokens = tokens,
           .ids = {ids.begin(), ids.end()}});
  }
  ReplayResult Foreseen(const std::string& predictor, std::uint32_t slots) {
    ReplayOptions options{.group = 1};
    options.costs = {.load_seconds = {3}, .layer_first_seconds = 1, .expert_first_seconds = 1};
    return RunOne({.predictor = predictor, .slots = slots}, options);
  }
};

TEST_F(ForeseenLoadsTest, HidesAsMuchOfALoadAsItsDepthLeavesTime) {
  // A layer takes 1 s to its routing and 1 s more, a load 3 s. Three loads of which the second and
  // third are wanted four layers after the first, one after the other.
  WriteOneLayer({0, 0, 0, 1, 2});
  EXPECT_DOUBLE_EQ(Foreseen("none", 8).stall_seconds, 3 + 3 + 3);
  // 0 from the beginning on, so 2 s late. 1 from the ask at 7 s to 10, wanted at 9. 2 then waits
  // for the link: from 10 to 13, wanted at 12.
  const ReplayResult one = Foreseen("oracle:1", 8);
  EXPECT_DOUBLE_EQ(one.stall_seconds, 2 + 1 + 1);
  EXPECT_EQ(one.prefetch.late, 3u);
  // 1 from the ask at 5 s to 8, wanted at 9; 2 from then to 11, wanted at 11.
  const ReplayResult two = Foreseen("oracle:2", 8);
  EXPECT_DOUBLE_EQ(two.stall_seconds, 2);
  EXPECT_EQ(two.prefetch.useful, 2u);
  EXPECT_DOUBLE_EQ(Foreseen("oracle:unlimited", 8).stall_seconds, 2);
  // 12 s in all, of which the link is busy for 9 and somebody waits for it for 2.
  EXPECT_DOUBLE_EQ(two.Time().stall_seconds, 2);
  EXPECT_DOUBLE_EQ(two.Time().overlapped_seconds, 7);
  EXPECT_DOUBLE_EQ(two.Time().computing_seconds, 3);
}

TEST_F(ForeseenLoadsTest, ALoadDoesNotPushOutWhatIsNeededBeforeIt) {
  // When 2 may be loaded, 0 was used longer ago than 1: but it is needed sooner.
  WriteOneLayer({0, 1, 0, 2, 1});
  const ReplayResult result = Foreseen("oracle:unlimited", 2);
  EXPECT_EQ(result.loads, 4u);
  EXPECT_EQ(result.prefetch.loads, 4u);
  EXPECT_EQ(result.prefetch.wasted, 0u);
}

TEST_F(ForeseenLoadsTest, EveryLoadEndsInOneOfTheWaysAndBytesAreThoseOfTheLoads) {
  Rng rng(TestSeed());
  const TraceHeader header = TestTraceHeader(false);
  Write(header, RandomBlock(header, {{.tokens = 120}}, rng));
  ReplayOptions options{.group = 1};
  options.costs = {.load_seconds = {1, 1, 1}, .layer_first_seconds = 1, .expert_first_seconds = 1};
  for (const char* predictor : {"oracle:1", "oracle:2", "oracle:5", "oracle:unlimited"}) {
    for (const bool per_layer : {false, true}) {
      const ReplayResult result =
          RunOne({.predictor = predictor, .slots = 12, .per_layer = per_layer}, options);
      const PrefetchStats& stats = result.prefetch;
      EXPECT_GT(stats.loads, 0u) << predictor;
      EXPECT_LE(stats.useful + stats.late + stats.wasted, stats.loads) << predictor;
      EXPECT_LE(stats.loads, result.loads) << predictor;
      EXPECT_EQ(result.all.tokens, 120u);
    }
  }
}

TEST_F(ForeseenLoadsTest, WhereTheLinkHasTimeSeeingEverythingIsNoWorseThanSeeingOneLayer) {
  Rng rng(TestSeed());
  const TraceHeader header = TestTraceHeader(false);
  for (int round = 0; round < 8; ++round) {
    Write(header, RandomBlock(header, {{.tokens = 150}}, rng));
    ReplayOptions options{.group = 1};
    // Less than a layer's time for all that a layer can miss.
    options.costs = {.load_seconds = {1, 1, 1},
                     .layer_first_seconds = 4.0 + static_cast<double>(rng.Below(4)),
                     .expert_first_seconds = 1};
    const auto slots = static_cast<std::uint32_t>(14 + rng.Below(8));
    const auto stall = [&](const char* predictor) {
      return RunOne({.predictor = predictor, .slots = slots}, options).stall_seconds;
    };
    const double none = stall("none"), one = stall("oracle:1"), all = stall("oracle:unlimited");
    EXPECT_LE(one, none) << "round " << round;
    EXPECT_LE(all, 1.02 * one + 3) << "round " << round;
  }
}

TEST_F(ForeseenLoadsTest, APromptOfManyRowsIsPlayedToItsEnd) {
  Rng rng(TestSeed());
  const TraceHeader header = TestTraceHeader(false);
  Write(header, RandomBlock(header, {{.tokens = 90}}, rng));
  ReplayOptions options{.group = 30};
  options.costs = {.load_seconds = {1, 1, 1}, .layer_first_seconds = 1, .expert_first_seconds = 1};
  for (const std::uint32_t slots : {3u, 7u, 12u}) {
    const ReplayResult result = RunOne({.predictor = "oracle:unlimited", .slots = slots}, options);
    EXPECT_EQ(result.all.passes, 3u);
    EXPECT_GT(result.crowded, 0u);
  }
}

TEST(LayersForeseen, ReadsANumberOfLayersOrNone) {
  EXPECT_EQ(LayersForeseen("oracle:16").value(), 16u);
  EXPECT_EQ(LayersForeseen("oracle:unlimited").value(), ForeseenLoads::kUnlimited);
  EXPECT_EQ(LayersForeseen("oracle").value(), std::nullopt);
  EXPECT_EQ(LayersForeseen("eap").value(), std::nullopt);
  for (const char* name : {"oracle:", "oracle:0", "oracle:two", "oracle:4x", "oracle:-1"}) {
    EXPECT_FALSE(LayersForeseen(name).ok()) << name;
  }
}

}  // namespace
}  // namespace troupe
