// Reading ahead by what routers say, in traces that have all scores: what it saves where routing
// follows from routing, and what it costs where nothing does.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "expert/prefetch/score_learner.h"
#include "sim/replay/replay_for_test.h"
#include "testing/test_seed.h"
#include "trace/trace_for_test.h"

namespace troupe {
namespace {

constexpr std::uint32_t kLayers = 6, kExperts = 16, kTopK = 2;

class ScoresAhead : public ReplayedTrace {
 protected:
  enum class Text { kFollows, kRandom, kChangesItsRules };

  // In a text that follows, a token's word says what layers choose and mostly which word comes
  // next.
  void Make(Text text, std::uint32_t tokens, Rng& rng) {
    TraceHeader header{.model = "m",
                       .layers = kLayers,
                       .experts = kExperts,
                       .top_k = kTopK,
                       .scores = ScoreKind::kSoftmax,
                       .all_scores = true};
    for (std::uint32_t l = 0; l < kLayers; ++l) {
      header.moe_layers.push_back(l);
      header.expert_bytes.push_back(1000);
    }
    block_ = {.domains = {""}, .segments = {{.tokens = tokens}}, .tokens = tokens};
    TraceBlock& block = block_;
    std::vector<std::uint32_t> words = {0};
    while (words.size() < tokens) {
      const bool follows = rng.Below(10) != 0;
      words.push_back(static_cast<std::uint32_t>(follows ? (5 * words.back() + 3) % kExperts
                                                         : rng.Below(kExperts)));
    }
    for (std::uint32_t l = 0; l < kLayers; ++l) {
      for (std::uint32_t t = 0; t < tokens; ++t) {
        const bool random = text == Text::kRandom;
        const std::uint32_t rule =
            text == Text::kChangesItsRules ? static_cast<std::uint32_t>(t / 100) * 3 : 0;
        const std::uint32_t first = random ? static_cast<std::uint32_t>(rng.Below(kExperts))
                                           : (words[t] * (2 * l + 1) + rule * l) % kExperts;
        const std::uint32_t second =
            (first + 1 + (random ? rng.Below(kExperts - 1) : l)) % kExperts;
        for (const std::uint32_t e : {first, second}) {
          block.ids.push_back(static_cast<std::uint16_t>(e));
          block.scores.push_back(0.25f);
        }
        for (std::uint32_t e = 0; e < kExperts; ++e) {
          const bool chosen = e == first || e == second;
          block.all_scores.push_back((chosen ? 256.0f : static_cast<float>(1 + rng.Below(63))) /
                                     1024);
        }
      }
    }
    Write(header, block);
  }

  // What the text that was made last teaches.
  ScoreTables Learned() const {
    ScoreLearner learner({.layers = kLayers, .experts = kExperts}, kTopK, 0);
    for (std::uint32_t t = 0; t < block_.tokens; ++t) {
      learner.TokenBegins(t);
      for (std::uint32_t l = 0; l < kLayers; ++l) {
        const std::size_t at = std::size_t{l} * block_.tokens + t;
        const auto ids = std::span(block_.ids).subspan(at * kTopK, kTopK);
        const std::vector<std::uint32_t> chosen(ids.begin(), ids.end());
        learner.OnLayer(l, std::span(block_.all_scores).subspan(at * kExperts, kExperts), chosen,
                        {});
      }
    }
    return std::move(learner).Learned();
  }

  // `load`: what loading an expert takes, in layer times.
  ReplayResult Play(const char* predictor, double share, double load,
                    const ScoreTables* known = nullptr) {
    ReplayOptions options{.group = 1};
    options.score_tables = known;
    options.costs = {.load_seconds = std::vector<double>(kLayers, load),
                     .layer_first_seconds = 0.5,
                     .expert_first_seconds = 0.25};
    const auto slots = static_cast<std::uint32_t>(share * kLayers * kExperts);
    return RunOne({.policy = "echo", .predictor = predictor, .slots = slots}, options);
  }

  TraceBlock block_;
};

TEST_F(ScoresAhead, MostOfTheStallGoesAwayWhereRoutingFollowsFromRouting) {
  Rng rng(TestSeed());
  Make(Text::kFollows, 1500, rng);
  for (const double load : {0.25, 0.5}) {
    const ReplayResult none = Play("none", 0.5, load), scores = Play("scores", 0.5, load);
    EXPECT_LT(scores.stall_seconds, 0.5 * none.stall_seconds) << load;
    EXPECT_LE(scores.bytes, none.bytes * 115 / 100) << load;
    const PrefetchStats& stats = scores.prefetch;
    EXPECT_GT(stats.useful, stats.wasted) << load;
    EXPECT_GT(stats.foresight.from[1].likely, 0u) << load;
  }
}

TEST_F(ScoresAhead, TellsHowManyMissesWereKnownAndHowFarAhead) {
  Rng rng(TestSeed());
  Make(Text::kFollows, 1500, rng);
  EXPECT_FALSE(Play("none", 0.5, 2).prefetch.chances.any());
  const JudgedChances follows = Play("scores", 0.5, 2).prefetch.chances;
  Make(Text::kRandom, 1500, rng);
  const JudgedChances random = Play("scores", 0.5, 2).prefetch.chances;
  // Loads of two layer times are of use four layers ahead.
  for (std::size_t ahead = 0; ahead < 4; ++ahead) {
    EXPECT_GT(follows.same_token[ahead].RecallAt(0.6), 0.5) << ahead;
    EXPECT_LT(random.same_token[ahead].RecallAt(0.6), 0.1) << ahead;
    EXPECT_GT(random.same_token[ahead].misses(), 0u) << ahead;
  }
}

TEST_F(ScoresAhead, WhatAnotherTextTaughtMakesTheFirstTokensMissesKnown) {
  Rng rng(TestSeed());
  Make(Text::kFollows, 1500, rng);
  const ScoreTables known = Learned();
  Make(Text::kFollows, 60, rng);
  const ReplayResult without = Play("scores", 0.5, 0.5);
  const ReplayResult with = Play("scores", 0.5, 0.5, &known);
  EXPECT_EQ(without.prefetch.tokens_known, 0u);
  EXPECT_EQ(with.prefetch.tokens_known, known.tokens);
  EXPECT_GT(with.prefetch.tokens_learned, known.tokens);
  for (std::size_t ahead = 0; ahead < 2; ++ahead) {
    const double kept = with.prefetch.chances.same_token[ahead].RecallAt(0.6);
    EXPECT_GT(kept, 0.6) << ahead;
    EXPECT_LT(without.prefetch.chances.same_token[ahead].RecallAt(0.6), kept) << ahead;
  }
  EXPECT_LT(with.stall_seconds, without.stall_seconds);
}

// It comes to rest by itself: there is nothing that turns it off.
TEST_F(ScoresAhead, CostsNextToNothingWhereNothingFollows) {
  Rng rng(TestSeed());
  for (const Text text : {Text::kRandom, Text::kChangesItsRules}) {
    Make(text, 800, rng);
    for (const double share : {0.25, 0.5, 0.75}) {
      for (const double load : {0.5, 1.0, 2.0, 4.0}) {
        const ReplayResult none = Play("none", share, load), scores = Play("scores", share, load);
        EXPECT_LE(scores.Seconds(), 1.02 * none.Seconds()) << share << ", " << load;
      }
    }
  }
}

TEST_F(ScoresAhead, TablesThatNoMemoryHoldsAreRefused) {
  Rng rng(TestSeed());
  TraceHeader header = TestTraceHeader(true, true);
  header.layers = 1;
  header.moe_layers = {0};
  header.experts = kMaxTraceExperts;
  Write(header, RandomBlock(header, {{.tokens = 1}}, rng));
  TraceReader reader = Open();
  ThreadPool pool(1);
  for (const char* predictor : {"scores", "eap"}) {
    const auto outcomes =
        Replay(reader, {{.predictor = predictor, .slots = 6}}, {.group = 1}, pool);
    EXPECT_EQ(outcomes.status().code(), Code::kResourceExhausted) << outcomes.status().message();
  }
}

TEST_F(ScoresAhead, NeedsATraceOfAllScores) {
  Rng rng(TestSeed());
  const TraceHeader header = TestTraceHeader(true);
  EXPECT_FALSE(CanPredict(header, "scores"));
  EXPECT_TRUE(CanPredict(header, "previous"));
  EXPECT_TRUE(CanPredict(TestTraceHeader(true, true), "scores"));
  Write(header, RandomBlock(header, {{.tokens = 20}}, rng));
  TraceReader reader = Open();
  ThreadPool pool(1);
  EXPECT_FALSE(Replay(reader, {{.predictor = "scores", .slots = 6}}, {.group = 1}, pool).ok());
}

}  // namespace
}  // namespace troupe
