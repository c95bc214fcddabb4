#include "lab/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"
#include "forge/synth.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

class CalibrationTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Engine> Open(const EngineOptions& options = {}) {
    const std::string path = folder_.path() / "m.gguf";
    EXPECT_TRUE(Synthesize(*FindShape(GetParam()), SynthOptions(), path).ok());
    return Engine::Open(path, options).value();
  }

  std::vector<TokenId> Text(const Engine& engine, std::size_t count) {
    Rng rng(TestSeed());
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) {
      token = static_cast<TokenId>(rng.Below(engine.config().vocabulary));
    }
    return tokens;
  }

  TempFolder folder_;
};

TEST_P(CalibrationTest, FindsForecastsForEveryLayerThatHasOneBefore) {
  const auto engine = Open();
  Session session = Session::Create(*engine).value();
  const std::vector<TokenId> text = Text(*engine, 150);
  const auto profile = Calibrate(session, *engine, text, {.window = 100, .together = 16});
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile->tokens, 150u);
  const MoeConfig& moe = engine->config().moe;
  ASSERT_EQ(profile->forecasts.size(), engine->config().layers - moe.leading_dense);
  const double chance = static_cast<double>(moe.routing.top_k) / moe.routing.experts;
  for (const ProfiledLayer& layer : profile->forecasts) {
    for (const ForecastPlace place : kForecastPlaces) {
      const ForecastQuality& quality = layer.plain[static_cast<std::size_t>(place)];
      const bool has_before = layer.layer > 0 || place == ForecastPlace::kOwnAttention;
      EXPECT_EQ(quality.tokens, has_before ? 150u : 0u);
      if (!has_before) continue;
      EXPECT_GT(quality.similarity, 0);
      EXPECT_GE(quality.guessed, quality.expected);
      EXPECT_GT(quality.expected, chance) << layer.layer << ": " << Name(place);
    }
    const bool forecast = layer.layer > moe.leading_dense;
    EXPECT_EQ(layer.corrected[0].tokens, forecast ? 150u : 0u);
  }
  EXPECT_FALSE(profile->learned.empty());
  EXPECT_FALSE(profile->shallow.empty());
  // Every token went from each of its experts to each of the next layer's.
  ASSERT_EQ(profile->paths.size(), profile->forecasts.size() - 1);
  for (const SeenPaths& paths : profile->paths) {
    EXPECT_EQ(std::accumulate(paths.follows.begin(), paths.follows.end(), 0.0f),
              150.0f * moe.routing.top_k * moe.routing.top_k);
  }
}

TEST_P(CalibrationTest, DoesNotDependOnHowManyTokensGoTogetherOrOnMemory) {
  const auto engine = Open();
  Session session = Session::Create(*engine).value();
  const std::vector<TokenId> text = Text(*engine, 64);
  const auto one = Calibrate(session, *engine, text, {.together = 1});
  const auto many = Calibrate(session, *engine, text, {.together = 64});
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_EQ(one->learned, many->learned);
  EXPECT_EQ(one->paths, many->paths);
  EXPECT_EQ(one->shallow[0].costs[0].misses, many->shallow[0].costs[0].misses);
  EngineOptions little;
  little.offload.slots = 4;
  const auto small = Open(little);
  Session offloaded = Session::Create(*small).value();
  EXPECT_EQ(Calibrate(offloaded, *small, text, {.together = 64})->learned, many->learned);
  // As of a plan that leaves little for a prompt's passes.
  const auto narrow = Open({.chunk = 5});
  Session in_chunks = Session::Create(*narrow).value();
  const auto cut = Calibrate(in_chunks, *narrow, text, {.together = 64});
  EXPECT_EQ(cut->learned, many->learned);
  EXPECT_EQ(cut->paths, many->paths);
  EXPECT_EQ(cut->shallow[0].costs[0].misses, many->shallow[0].costs[0].misses);
}

TEST_P(CalibrationTest, WhatWasLearnedIsWhatTheNextRunBeginsWith) {
  const auto engine = Open();
  Session session = Session::Create(*engine).value();
  const std::vector<TokenId> text = Text(*engine, 300);
  ModelProfile profile = Calibrate(session, *engine, text, {}).value();
  const ExpertGrid grid{.layers = profile.layers, .experts = profile.experts};
  GateCorrection correction(grid, engine->config().moe.routing.top_k, kMostLayersAhead);
  EXPECT_TRUE(correction.Learned().empty());
  correction.BeginWith(profile.learned);
  EXPECT_EQ(correction.Learned(), profile.learned);
}

TEST_P(CalibrationTest, ScoresAreLearnedOfEveryTokenHoweverManyGoTogether) {
  const auto engine = Open();
  const ExpertGrid grid{.layers = engine->config().layers,
                        .experts = engine->config().moe.routing.experts};
  const auto& moe = engine->config().moe;
  Session session = Session::Create(*engine).value();
  const std::vector<TokenId> text = Text(*engine, 100);
  std::vector<ScoreTables> tables;
  for (const std::size_t together : {1u, 32u}) {
    ScoreLearner learner(grid, moe.routing.top_k, moe.leading_dense);
    ASSERT_TRUE(
        Calibrate(session, *engine, text, {.window = 60, .together = together, .scores = &learner})
            .ok());
    EXPECT_EQ(learner.tokens(), 100u);
    tables.push_back(std::move(learner).Learned());
  }
  EXPECT_EQ(tables[0].layers.size(), grid.layers - moe.leading_dense);
  EXPECT_EQ(tables[0].weights, tables[1].weights);
  EXPECT_EQ(tables[0].shares, tables[1].shares);
  EXPECT_GE(tables[0].tokens, 99u);
}

TEST_P(CalibrationTest, ATextWithoutTokensIsRefused) {
  const auto engine = Open();
  Session session = Session::Create(*engine).value();
  EXPECT_FALSE(Calibrate(session, *engine, {}, {}).ok());
}

INSTANTIATE_TEST_SUITE_P(Shapes, CalibrationTest,
                         testing::Values("tiny-qwen2moe", "tiny-deepseek2", "tiny-qwen3moe"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace troupe
