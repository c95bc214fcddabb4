#include "expert/prefetch/miss_forecast.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "expert/cache/lru.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kForecastGrid{.layers = 4, .experts = 6};

// A text in which a word says what its layers choose, but not which word comes next, through a
// small cache that loads what is asked for. Beside it a model that writes down every chance of an
// expert that had to be loaded when it is said, and what came of it.
class MissForecastTest : public testing::Test {
 protected:
  MissForecastTest() : forecast_(cache_, loads_, 1) {}

  void Bring(ExpertId id) {
    if (cache_.Find(id) != Residence::kAbsent) return;
    const auto admission = cache_.Admit(id);
    ASSERT_TRUE(admission.has_value());
    if (admission->evicted) loads_.End(*admission->evicted);
    cache_.OnLoaded(id);
  }

  void Layer(std::uint32_t word, std::uint32_t layer) {
    const std::uint32_t expert = rng_.Below(10) == 0
                                     ? static_cast<std::uint32_t>(rng_.Below(kForecastGrid.experts))
                                     : (word + layer) % kForecastGrid.experts;
    std::vector<float> scores(kForecastGrid.experts, 0.02f);
    scores[expert] = 0.9f;
    forecast_.OnScores(layer, scores);
    const std::vector<ExpertDemand> demands = {{.expert = expert, .tokens = 1}};
    forecast_.OnLayerAsks(layer, demands, 0, said_);
    Judge(layer, expert);
    cache_.Ask({layer, expert}, 1);
    loads_.End({layer, expert});
    Bring({layer, expert});
    forecast_.Predict(forecast_.reach());
    WriteDown(layer);
    if (reads_ahead_ && rng_.Below(3) == 0) ReadAhead();
  }

  // Anything, whatever was predicted.
  void ReadAhead() {
    const ExpertId id{static_cast<std::uint32_t>(rng_.Below(kForecastGrid.layers)),
                      static_cast<std::uint32_t>(rng_.Below(kForecastGrid.experts))};
    if (cache_.Find(id) != Residence::kAbsent) return;
    Bring(id);
    loads_.Begin(id, std::nullopt);
  }

  void WriteDown(std::uint32_t layer) {
    for (const MissForecast::List& list : forecast_.lists()) {
      if (list.due != forecast_.asks() + list.ahead) continue;
      for (std::uint32_t e = 0; e < kForecastGrid.experts; ++e) {
        const ExpertId id{list.layer, e};
        const bool absent = cache_.Find(id) == Residence::kAbsent;
        if (!absent && !loads_.Has(id)) continue;
        written_.push_back({.due = list.due,
                            .id = id,
                            .ahead = list.ahead,
                            .next_token = list.layer <= layer,
                            .absent = absent,
                            .chance = list.experts[e].chance});
      }
    }
  }

  void Judge(std::uint32_t layer, std::uint32_t asked) {
    std::erase_if(written_, [&](const Written& one) {
      if (one.due != forecast_.asks()) return false;
      EXPECT_EQ(one.id.layer, layer);
      (one.absent ? judged_absent_ : judged_ahead_)
          .push_back({one.ahead, one.next_token, one.chance, one.id.expert == asked});
      return true;
    });
  }

  void Tokens(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      word_ = static_cast<std::uint32_t>(rng_.Below(kForecastGrid.experts));
      forecast_.OnPassBegins({.first_layer = 0, .groups = {{.position = position_++, .rows = 1}}});
      for (std::uint32_t layer = 0; layer < kForecastGrid.layers; ++layer) Layer(word_, layer);
    }
  }

  struct Written {
    std::uint64_t due = 0;
    ExpertId id;
    std::uint32_t ahead = 0;
    bool next_token = false, absent = false;
    double chance = 0;
  };
  struct Outcome {
    std::uint32_t ahead = 0;
    bool next_token = false;
    double chance = 0;
    bool asked = false;
  };

  Rng rng_{TestSeed()};
  ExpertCache cache_{CacheShape{.grid = kForecastGrid, .slots = 12, .quotas = {}},
                     std::make_unique<Lru>(kForecastGrid)};
  AheadLoads loads_{kForecastGrid};
  MissForecast forecast_;
  std::vector<SaidOfExpert> said_;
  bool reads_ahead_ = false;
  std::uint32_t word_ = 0, position_ = 0;
  std::vector<Written> written_;
  std::vector<Outcome> judged_absent_, judged_ahead_;
};

TEST_F(MissForecastTest, CountsEveryChanceOfAnAbsentExpertByWhatCameOfIt) {
  Tokens(400);
  JudgedChances slow;
  for (const Outcome& one : judged_absent_) {
    (one.next_token ? slow.next_token : slow.same_token)[one.ahead - 1].Count(
        ChanceHistogram::BinOf(one.chance), one.asked);
  }
  EXPECT_EQ(forecast_.judged(), slow);
  EXPECT_TRUE(judged_ahead_.empty());
  EXPECT_GT(slow.same_token[2].misses(), 0u);
  EXPECT_GT(slow.next_token[0].misses(), 0u);
}

// Or reading ahead would take out of the count what it knew best.
TEST_F(MissForecastTest, WhatWasReadAheadIsStillCountedAsToBeLoaded) {
  reads_ahead_ = true;
  Tokens(400);
  ASSERT_FALSE(judged_ahead_.empty());
  std::uint64_t said = 0, asked = 0;
  for (const auto* distances : {&forecast_.judged().same_token, &forecast_.judged().next_token}) {
    for (const ChanceHistogram& histogram : *distances) {
      for (const ChanceHistogram::Bin& bin : histogram.bins()) {
        said += bin.said;
        asked += bin.asked;
      }
    }
  }
  EXPECT_EQ(said, judged_absent_.size() + judged_ahead_.size());
  std::uint64_t slow_asked = 0;
  for (const auto* outcomes : {&judged_absent_, &judged_ahead_}) {
    for (const Outcome& one : *outcomes) slow_asked += one.asked ? 1 : 0;
  }
  EXPECT_EQ(asked, slow_asked);
}

TEST_F(MissForecastTest, TheSameTokensLayersAreForetoldAndTheNextTokensAreNot) {
  Tokens(1500);
  EXPECT_GT(forecast_.judged().same_token[0].RecallAt(0.7), 0.5);
  EXPECT_LT(forecast_.judged().next_token[0].RecallAt(0.7), 0.2);
}

}  // namespace
}  // namespace troupe
