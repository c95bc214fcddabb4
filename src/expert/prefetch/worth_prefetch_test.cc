#include "expert/prefetch/worth_prefetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "expert/cache/lru.h"
#include "expert/forecast/told_predictor_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kWorthGrid{.layers = 6, .experts = 8};
constexpr double kLoad = 0.0005;

// A text in which a token says what its layers choose and which token follows; computing alone
// takes a layer 1 ms, and a load a half.
class WorthPrefetchTest : public testing::Test {
 protected:
  WorthPrefetchTest() { Open(24); }

  void Open(std::uint32_t slots) {
    prefetch_.reset();
    cache_.emplace(CacheShape{.grid = kWorthGrid, .slots = slots, .quotas = {}},
                   std::make_unique<Lru>(kWorthGrid));
    prefetch_.emplace(*cache_, 1,
                      std::make_unique<Prefetcher>(*cache_, 1, std::make_unique<Told>(told_)));
  }

  static std::uint32_t After(std::uint32_t token) { return (token + 3) % kWorthGrid.experts; }
  std::uint32_t Chosen(std::uint32_t token, std::uint32_t layer) {
    return random_ ? static_cast<std::uint32_t>(rng_.Below(kWorthGrid.experts))
                   : (token + layer) % kWorthGrid.experts;
  }

  void Bring(ExpertId id, bool demand) {
    const auto admission = cache_->Admit(id);
    ASSERT_TRUE(admission.has_value());
    if (admission->evicted) prefetch_->OnEvicted(*admission->evicted, demand);
    if (!demand) prefetch_->OnLoadBegins(id, admission->evicted);
    cache_->OnLoaded(id);
    if (!demand) prefetch_->OnLoaded(id);
  }

  // Loads what is worth it; how many.
  std::size_t ReadAhead() {
    std::size_t count = 0;
    for (;; ++count) {
      prefetch_->OnLink({.now = now_,
                         .queued_seconds = static_cast<double>(count) * kLoad,
                         .held_seconds = kLoad});
      const std::optional<ExpertId> id = prefetch_->Next(count);
      if (!id) return count;
      begun_.push_back(*id);
      Bring(*id, false);
    }
  }

  void Layer(std::uint32_t token, std::uint32_t layer) {
    const std::uint32_t expert = Chosen(token, layer);
    std::vector<float> scores(kWorthGrid.experts);
    for (float& score : scores) score = 0.01f + 0.02f * static_cast<float>(rng_.Uniform());
    scores[expert] = 0.9f;
    prefetch_->OnScores(layer, scores);
    const std::vector<ExpertDemand> demands = {{.expert = expert, .tokens = 1}};
    prefetch_->OnLayerAsks({layer, demands}, now_);
    const ExpertId id{layer, expert};
    const Residence residence = cache_->Ask(id, 1);
    prefetch_->OnFound(id, residence);
    const bool missing = residence == Residence::kAbsent;
    misses_ += missing ? 1 : 0;
    prefetch_->Release(layer);
    prefetch_->OnMisses(missing ? 1 : 0, load_seconds_);
    if (missing) {
      Bring(id, true);
      now_ += static_cast<Nanos>(load_seconds_ * 1e9);
    }
    ReadAhead();
    now_ += idle_;
  }

  std::uint32_t Tokens(std::uint32_t count, std::uint32_t token = 0) {
    for (std::uint32_t i = 0; i < count; ++i, token = After(token), ++position_) {
      prefetch_->OnPassBegins({.first_layer = 0, .groups = {{.position = position_, .rows = 1}}});
      for (std::uint32_t layer = 0; layer < kWorthGrid.layers; ++layer) Layer(token, layer);
    }
    return token;
  }

  Rng rng_{TestSeed()};
  std::vector<Guess> told_;
  std::optional<ExpertCache> cache_;
  std::optional<WorthPrefetch> prefetch_;
  bool random_ = false;
  double load_seconds_ = kLoad;
  Nanos idle_ = 1'000'000;
  Nanos now_ = 0;
  std::uint32_t position_ = 0;
  std::uint64_t misses_ = 0;
  std::vector<ExpertId> begun_;
};

TEST_F(WorthPrefetchTest, ReadsWhatScoresPredictAndMissesGoAway) {
  Open(12);  // a quarter: in turn every expert is gone before it is asked for again
  std::uint32_t token = Tokens(400);
  misses_ = 0;
  begun_.clear();
  token = Tokens(50, token);
  EXPECT_LT(misses_, 50 * kWorthGrid.layers / 20);
  const PrefetchStats stats = prefetch_->stats();
  EXPECT_GT(stats.useful, stats.loads * 8 / 10);
  std::set<std::uint32_t> layers;
  for (const ExpertId id : begun_) layers.insert(id.layer);
  EXPECT_TRUE(layers.contains(0)) << "the next token's first layer";
  EXPECT_GT(stats.foresight.from[1].named, 0u);
}

TEST_F(WorthPrefetchTest, CountsEverythingThatWasAskedForWhetherPredictedOrNot) {
  Tokens(1);
  EXPECT_EQ(prefetch_->stats().asked, kWorthGrid.layers);
  EXPECT_LT(prefetch_->stats().guessed, kWorthGrid.layers);  // of the first ask nothing is known
}

TEST_F(WorthPrefetchTest, NothingIsReadOnALinkThatDemandKeepsBusy) {
  Open(12);
  Tokens(300);
  idle_ = 0;
  load_seconds_ = 0.005;
  const std::uint32_t token = Tokens(100);
  begun_.clear();
  Tokens(20, token);
  EXPECT_LT(begun_.size(), 6u);
}

TEST_F(WorthPrefetchTest, OfRoutingThatNothingPredictsHardlyAnythingIsRead) {
  Open(24);
  random_ = true;
  load_seconds_ = 0.0012;
  Tokens(1500);
  begun_.clear();
  misses_ = 0;
  Tokens(200);
  EXPECT_LT(begun_.size(), misses_ / 20);
}

TEST_F(WorthPrefetchTest, WhatItBeganIsWantedUntilItsLayerAsks) {
  Open(12);
  const std::uint32_t token = Tokens(400);
  prefetch_->OnPassBegins({.first_layer = 0, .groups = {{.position = position_, .rows = 1}}});
  begun_.clear();
  Layer(token, 0);
  Layer(token, 1);
  for (const ExpertId id : begun_) {
    EXPECT_EQ(prefetch_->IsWanted(id), id.layer != 1) << ToString(id);
    EXPECT_TRUE(prefetch_->IsAhead(id) || id.layer == 1);
  }
}

TEST_F(WorthPrefetchTest, APromptIsLeftToThePrefetcherOfPrompts) {
  told_ = {{.expert = 5, .expected = true}};
  prefetch_->OnPassBegins({.first_layer = 0, .groups = {{.phase = Phase::kPrompt, .rows = 9}}});
  EXPECT_TRUE(prefetch_->is_sure());
  const std::vector<ExpertDemand> demands = {{.expert = 0, .tokens = 9}};
  prefetch_->OnLayerAsks({0, demands}, now_);
  prefetch_->OnForecast(1, 1, {});
  prefetch_->OnLink({});
  EXPECT_EQ(prefetch_->Next(0), (ExpertId{1, 5}));
  Bring({1, 5}, false);
  EXPECT_EQ(prefetch_->prompts().stats().loads, 1u);
  // Decode does not guess by gates, and what the prompt began is no longer wanted.
  prefetch_->OnPassBegins({.first_layer = 0, .groups = {{.position = 9, .rows = 1}}});
  EXPECT_FALSE(prefetch_->is_sure());
  EXPECT_EQ(prefetch_->forecast_layers(), 0u);
  EXPECT_FALSE(prefetch_->IsWanted({1, 5}));
  EXPECT_TRUE(prefetch_->IsAhead({1, 5}));
  prefetch_->OnEvicted({1, 5});
  EXPECT_EQ(prefetch_->stats().wasted, 1u);
}

TEST_F(WorthPrefetchTest, EveryLoadEndsInOneWay) {
  Open(9);
  for (int round = 0; round < 40; ++round) {
    random_ = rng_.Below(2) == 0;
    load_seconds_ = kLoad * static_cast<double>(1 + rng_.Below(3));
    Tokens(30, static_cast<std::uint32_t>(rng_.Below(kWorthGrid.experts)));
    const PrefetchStats stats = prefetch_->stats();
    EXPECT_EQ(stats.loads,
              stats.useful + stats.late + stats.cancelled + stats.wasted + prefetch_->waiting());
  }
}

}  // namespace
}  // namespace troupe
