#include "sim/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sim/replay/replay_for_test.h"
#include "testing/test_seed.h"
#include "trace/trace_for_test.h"

namespace troupe {
namespace {

using ReplayTest = ReplayedTrace;

// Tokens that like some experts more than others, and what the token before had.
TraceBlock SkewedBlock(const TraceHeader& header, std::uint32_t tokens, Rng& rng) {
  TraceBlock block = RandomBlock(header, {{.tokens = tokens}}, rng);
  for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
    for (std::uint32_t t = 1; t < tokens; ++t) {
      if (rng.Below(2) == 0) continue;
      std::copy_n(
          block.ids.begin() + static_cast<std::ptrdiff_t>((l * tokens + t - 1) * header.top_k),
          header.top_k,
          block.ids.begin() + static_cast<std::ptrdiff_t>((l * tokens + t) * header.top_k));
    }
  }
  return block;
}

TEST_F(ReplayTest, CountsHitsAndLoadsOfASmallTraceAsByHand) {
  // One layer, two of five experts a token, three slots, least recently used.
  const TraceHeader header{
      .model = "m", .layers = 1, .moe_layers = {0}, .experts = 5, .top_k = 2, .expert_bytes = {10}};
  Write(header, {.domains = {""},
                 .segments = {{.tokens = 5}},
                 .tokens = 5,
                 .ids = {0, 1, 1, 2, 0, 1, 3, 4, 0, 1}});
  const ReplayResult result = RunOne({.slots = 3});
  // 0 1 missed; 1 hit, 2 missed; 0 1 hit; 3 4 missed (2 goes, then 0); 0 missed (1 asked later), 1
  // hit.
  EXPECT_EQ(result.all.asks, 10u);
  EXPECT_EQ(result.all.hits, 4u);
  EXPECT_EQ(result.loads, 6u);
  EXPECT_EQ(result.bytes, 60u);
  EXPECT_EQ(result.layers[0].hits, 4u);
  EXPECT_EQ(result.prefill.tokens, 5u);
  EXPECT_EQ(result.decode.tokens, 0u);
}

TEST_F(ReplayTest, APassOfAPromptAndADecodeCountsAsNeither) {
  const TraceHeader header{.model = "m",
                           .layers = 1,
                           .moe_layers = {0},
                           .experts = 5,
                           .top_k = 1,
                           .expert_bytes = {10},
                           .sequences = 2};
  const auto decode = TracePhase::kDecode;
  Write(header, {.domains = {""},
                 .segments = {{.sequence = 0, .tokens = 2},
                              {.sequence = 0, .position = 2, .tokens = 1, .phase = decode},
                              {.sequence = 1, .tokens = 3, .joins = true, .place = 1},
                              {.sequence = 0, .position = 3, .tokens = 1, .phase = decode}},
                 .tokens = 7,
                 .ids = {0, 1, 2, 0, 1, 2, 3}});
  const ReplayResult result = RunOne({.slots = 5}, {.group = 0});
  EXPECT_EQ(result.prefill.tokens, 2u);
  EXPECT_EQ(result.decode.tokens, 1u);
  EXPECT_EQ(result.mixed.tokens, 4u);
  EXPECT_EQ(result.mixed.passes, 1u);
  EXPECT_EQ(result.all.tokens, 7u);
  EXPECT_EQ(result.mixed.asks, 3u);
  EXPECT_EQ(result.mixed.hits, 2u);
}

TEST_F(ReplayTest, NoPolicyHitsMoreOftenThanTheOptimumOfTheSameCache) {
  Rng rng(TestSeed());
  for (int round = 0; round < 6; ++round) {
    const TraceHeader header = TestTraceHeader(false);
    Write(header, SkewedBlock(header, 150, rng));
    for (const bool per_layer : {false, true}) {
      for (std::uint32_t slots = 9; slots <= 33; slots += 8) {
        std::vector<ReplaySpec> specs = {
            {.policy = "optimum", .slots = slots, .per_layer = per_layer}};
        for (const std::string& policy : RoutePolicyNames()) {
          specs.push_back({.policy = policy, .slots = slots, .per_layer = per_layer});
        }
        const auto outcomes = Run(specs);
        for (const ReplayOutcome& outcome : outcomes) {
          EXPECT_LE(outcome.result.all.hits, outcomes.front().result.all.hits)
              << outcome.spec.policy << ", " << slots;
          EXPECT_EQ(outcome.result.all.asks, 150u * 9);
          EXPECT_EQ(outcome.result.loads, outcome.result.all.asks - outcome.result.all.hits);
        }
      }
    }
  }
}

// The most hits that any choice of victims gives where a token's experts are needed together.
std::uint64_t MostHits(const std::vector<std::uint32_t>& tokens, int slots) {
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> known;
  const auto best = [&](auto&& self, std::size_t at, std::uint32_t held) -> std::uint64_t {
    if (at == tokens.size()) return 0;
    const auto key = std::pair(at, held);
    if (const auto found = known.find(key); found != known.end()) return found->second;
    const std::uint32_t wanted = tokens[at];
    const auto hits = static_cast<std::uint64_t>(__builtin_popcount(held & wanted));
    std::uint64_t most = 0;
    const std::uint32_t others = held & ~wanted;
    // Every subset of the others that may stay.
    for (std::uint32_t stay = others;; stay = (stay - 1) & others) {
      const std::uint32_t next = stay | wanted;
      const bool fits = __builtin_popcount(next) <= slots;
      if (fits) most = std::max(most, hits + self(self, at + 1, next));
      if (stay == 0) break;
    }
    return known[key] = most;
  };
  return best(best, 0, 0);
}

TEST_F(ReplayTest, TheOptimumIsTheBestOfAllChoicesAlsoWhereATokenNeedsSeveralAtOnce) {
  Rng rng(TestSeed());
  const TraceHeader header{.model = "m", .layers = 1, .moe_layers = {0}, .experts = 7, .top_k = 2};
  for (int round = 0; round < 30; ++round) {
    const TraceBlock block = RandomBlock(header, {{.tokens = 14}}, rng);
    Write(header, block);
    std::vector<std::uint32_t> tokens;
    for (std::size_t t = 0; t < 14; ++t) {
      tokens.push_back(1u << block.ids[2 * t] | 1u << block.ids[2 * t + 1]);
    }
    for (std::uint32_t slots = 2; slots <= 5; ++slots) {
      EXPECT_EQ(RunOne({.policy = "optimum", .slots = slots}).all.hits,
                MostHits(tokens, static_cast<int>(slots)))
          << "round " << round << ", slots " << slots;
    }
  }
}

TEST_F(ReplayTest, AllExpertsInMemoryMissEachOnceAndAFullerCacheMissesNoMoreUnderLru) {
  Rng rng(3);
  const TraceHeader header = TestTraceHeader(false);
  Write(header, SkewedBlock(header, 200, rng));
  EXPECT_EQ(RunOne({.slots = 36}).loads, 36u);
  std::uint64_t before = ~std::uint64_t{0};
  for (std::uint32_t slots = 9; slots <= 36; slots += 9) {
    const std::uint64_t loads = RunOne({.slots = slots, .per_layer = false}).loads;
    EXPECT_LE(loads, before);
    before = loads;
  }
}

TEST_F(ReplayTest, ShallowLayersAreServedBetterThanOthers) {
  Rng rng(3);
  const TraceHeader header = TestTraceHeader(false);
  Write(header, SkewedBlock(header, 200, rng));
  const ReplayResult result = RunOne({.slots = 18, .shallow = 1});
  EXPECT_EQ(result.layers[0].asks - result.layers[0].hits, 12u);  // each of the layer's once
  EXPECT_GT(result.layers[0].HitRate(), result.layers[1].HitRate() + 0.2);
}

// The first layer's tokens choose others each time, the two behind it the same pair.
TEST_F(ReplayTest, AFloorKeepsOneLayerFromTakingAllSlotsOfTheOthers) {
  const TraceHeader header{
      .model = "m", .layers = 3, .moe_layers = {0, 1, 2}, .experts = 12, .top_k = 2};
  constexpr std::uint32_t kTokens = 120;
  TraceBlock block{.domains = {""}, .segments = {{.tokens = kTokens}}, .tokens = kTokens};
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    for (std::uint32_t t = 0; t < kTokens; ++t) {
      const std::uint32_t first = layer == 0 ? 2 * t % 12 : 0;
      block.ids.push_back(static_cast<std::uint16_t>(first));
      block.ids.push_back(static_cast<std::uint16_t>(first + 1));
    }
  }
  Write(header, block);
  const auto run = [&](double floor) {
    return RunOne({.slots = 4, .per_layer = false, .floor = floor});
  };
  // Behind LRU four slots have what the two layers before asked for.
  EXPECT_EQ(run(0).all.hits, 0u);
  // With one that nobody takes, the later of a pair is there for the next token.
  const ReplayResult kept = run(1);
  EXPECT_EQ(kept.layers[0].hits, 0u);
  EXPECT_EQ(kept.layers[1].hits, kTokens - 1);
  EXPECT_EQ(kept.layers[2].hits, kTokens - 1);
  EXPECT_EQ(run(0.2).all.hits, 0u);  // less than a slot
}

TEST_F(ReplayTest, StallIsTheTimeOfLoadsThatNothingHides) {
  const TraceHeader header{.model = "m", .layers = 1, .moe_layers = {0}, .experts = 4, .top_k = 2};
  Write(header, {.domains = {""}, .segments = {{.tokens = 2}}, .tokens = 2, .ids = {0, 1, 1, 2}});
  ReplayOptions options{.group = 1};
  options.costs = {.latency_seconds = 1,
                   .load_seconds = {4},
                   .layer_first_seconds = 10,
                   .expert_first_seconds = 3};
  const ReplayResult result = RunOne({.slots = 3}, options);
  // 0 after 5 s; 1 four later, of which the computing of 0 hides three; then 2, whose five are
  // hidden for three by 1.
  EXPECT_DOUBLE_EQ(result.stall_seconds, 5 + 1 + 2);
  EXPECT_DOUBLE_EQ(result.compute_seconds, 2 * 10 + 4 * 3);
  EXPECT_EQ(result.begun_early, 0u);
}

TEST_F(ReplayTest, ComputingThatBeginsWithAPartOfTheBytesShortensEachWait) {
  const TraceHeader header{.model = "m", .layers = 1, .moe_layers = {0}, .experts = 4, .top_k = 2};
  Write(header, {.domains = {""}, .segments = {{.tokens = 2}}, .tokens = 2, .ids = {0, 1, 1, 2}});
  ReplayOptions options{.group = 1};
  options.costs = {.latency_seconds = 1,
                   .load_seconds = {4},
                   .layer_first_seconds = 10,
                   .expert_first_seconds = 3,
                   .begin_share = 0.5};
  const ReplayResult result = RunOne({.slots = 3}, options);
  // As above, but half of the computing of each that is waited for is done in the last two seconds
  // of its load: 1.5 of 5; then 1.5 of the 2.5 that what is left of 0 does not hide; 1.5 of 2.
  EXPECT_DOUBLE_EQ(result.stall_seconds, 3.5 + 1 + 0.5);
  EXPECT_DOUBLE_EQ(result.compute_seconds, 2 * 10 + 4 * 3);
  EXPECT_EQ(result.begun_early, 3u);
  options.costs.begin_share = 0.9;  // of a load's last 0.4 s
  EXPECT_NEAR(RunOne({.slots = 3}, options).stall_seconds, 4.6 + 1 + 1.6, 1e-9);
}

TEST_F(ReplayTest, TheOracleHidesLoadsAndEveryPrefetchIsAccountedFor) {
  Rng rng(8);
  const TraceHeader header = TestTraceHeader(false);
  Write(header, SkewedBlock(header, 200, rng));
  ReplayOptions options{.group = 1};
  options.costs = {.load_seconds = {1, 1, 1}, .layer_first_seconds = 4, .expert_first_seconds = 1};
  const auto run = [&](const char* predictor) {
    return RunOne({.predictor = predictor, .slots = 18, .governed = false}, options);
  };
  const ReplayResult without = run("none");
  EXPECT_EQ(without.prefetch, PrefetchStats());
  const ReplayResult oracle = run("oracle");
  EXPECT_LT(oracle.stall_seconds, 0.6 * without.stall_seconds);
  // All but what the first layer asks for, of which nothing is guessed.
  EXPECT_EQ(oracle.prefetch.guessed,
            oracle.prefetch.asked - oracle.prefetch.asked / header.moe_layers.size());
  EXPECT_GT(oracle.prefetch.useful, 0u);
  for (const char* predictor : {"previous", "eap", "oracle"}) {
    const PrefetchStats stats = run(predictor).prefetch;
    const std::uint64_t ended = stats.useful + stats.late + stats.cancelled + stats.wasted;
    EXPECT_LE(ended, stats.loads) << predictor;
    EXPECT_LE(stats.loads - ended, 18u) << predictor;
    EXPECT_GT(stats.guessed, 0u) << predictor;
  }
}

TEST_F(ReplayTest, ManyCachesAtOnceAreAsEachAlone) {
  Rng rng(8);
  const TraceHeader header = TestTraceHeader(false);
  Write(header, SkewedBlock(header, 300, rng));
  std::vector<ReplaySpec> specs;
  for (const char* policy : {"lru", "lfu", "arc", "optimum"}) {
    for (std::uint32_t slots = 12; slots <= 30; slots += 6) {
      specs.push_back({.policy = policy, .slots = slots});
    }
  }
  const auto together = Run(specs);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(together[i].result.cache, RunOne(specs[i]).cache);
  }
}

TEST_F(ReplayTest, ACacheSmallerThanOneLayersNeedStillServesThePass) {
  Rng rng(8);
  const TraceHeader header = TestTraceHeader(false);
  Write(header, SkewedBlock(header, 60, rng));
  for (const std::uint32_t slots : {1u, 2u, 5u}) {
    const ReplayResult result = RunOne({.slots = slots}, {.group = 20});
    EXPECT_EQ(result.loads, result.all.asks - result.all.hits) << slots;
  }
}

TEST_F(ReplayTest, RefusesWhatHasNoMeaning) {
  Rng rng(8);
  const TraceHeader header = TestTraceHeader(false);
  Write(header, SkewedBlock(header, 10, rng));
  TraceReader reader = TraceReader::Open(path()).value();
  ThreadPool pool(1);
  const auto error = [&](const ReplaySpec& spec) {
    return Replay(reader, {spec}, {}, pool).status().message();
  };
  EXPECT_THAT(error({.slots = 0}), testing::HasSubstr("no slots"));
  EXPECT_THAT(error({.policy = "best", .slots = 3}), testing::HasSubstr("'best'"));
  EXPECT_THAT(error({.policy = "optimum", .predictor = "eap", .slots = 3}),
              testing::HasSubstr("'eap'"));
  EXPECT_THAT(error({.slots = 3, .shallow = 9}), testing::HasSubstr("9 layers"));
  EXPECT_THAT(error({.slots = 3, .floor = 0.5}), testing::HasSubstr("one pool"));
  EXPECT_THAT(error({.slots = 3, .per_layer = false, .floor = 1.5}), testing::HasSubstr("0 to 1"));
}

}  // namespace
}  // namespace troupe
