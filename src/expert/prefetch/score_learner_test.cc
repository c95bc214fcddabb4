#include "expert/prefetch/score_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "expert/cache/lru.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kTextGrid{.layers = 5, .experts = 8};
constexpr std::uint32_t kFirstWithExperts = 1;

// Texts in which a word says, mostly, what its layers choose; which word comes next is random.
class ScoreLearnerTest : public testing::Test {
 protected:
  std::uint32_t ChosenBy(std::uint32_t word, std::uint32_t layer) {
    return rng_.Below(10) == 0 ? static_cast<std::uint32_t>(rng_.Below(kTextGrid.experts))
                               : (3 * word + layer) % kTextGrid.experts;
  }

  std::vector<float> ScoresFor(std::uint32_t expert) {
    std::vector<float> scores(kTextGrid.experts);
    for (float& score : scores) score = 0.01f + 0.02f * static_cast<float>(rng_.Uniform());
    scores[expert] = 0.9f;
    return scores;
  }

  std::uint32_t Word() { return static_cast<std::uint32_t>(rng_.Below(kTextGrid.experts)); }

  ScoreTables LearnedFrom(std::uint32_t tokens, bool with_gates = false) {
    ScoreLearner learner(kTextGrid, 1, kFirstWithExperts);
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const std::uint32_t word = Word();
      learner.TokenBegins(t % 64);
      for (std::uint32_t layer = kFirstWithExperts; layer < kTextGrid.layers; ++layer) {
        const std::uint32_t expert = ChosenBy(word, layer);
        const std::vector<float> early = ScoresFor((3 * word + layer + 1) % kTextGrid.experts);
        std::vector<EarlyGate> gates;
        if (with_gates && layer + 1 < kTextGrid.layers) {
          gates.push_back({.layer = layer + 1, .ahead = 1, .scores = early});
        }
        learner.OnLayer(layer, ScoresFor(expert), {&expert, 1}, gates);
      }
    }
    EXPECT_EQ(learner.tokens(), tokens);
    return std::move(learner).Learned();
  }

  // Another text, through a small cache of another policy; of its misses the share that was known
  // two layers ahead.
  double RecallWith(std::optional<ScoreTables> known, std::uint32_t tokens) {
    ExpertCache cache(CacheShape{.grid = kTextGrid, .slots = 16, .quotas = {}},
                      std::make_unique<Lru>(kTextGrid));
    const AheadLoads none(kTextGrid);
    MissForecast forecast(cache, none, 1, std::move(known));
    std::vector<SaidOfExpert> said;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      forecast.OnPassBegins(OneGroup(kFirstWithExperts, Phase::kDecode, 1, t));
      const std::uint32_t word = Word();
      for (std::uint32_t layer = kFirstWithExperts; layer < kTextGrid.layers; ++layer) {
        const std::uint32_t expert = ChosenBy(word, layer);
        forecast.OnScores(layer, ScoresFor(expert));
        const ExpertDemand demand{.expert = expert, .tokens = 1};
        forecast.OnLayerAsks(layer, {&demand, 1}, 0, said);
        const bool absent = cache.Ask({layer, expert}, 1) == Residence::kAbsent;
        forecast.Predict(forecast.reach());
        if (absent && cache.Admit({layer, expert})) cache.OnLoaded({layer, expert});
      }
    }
    EXPECT_GT(forecast.judged().same_token[1].misses(), tokens / 4);
    EXPECT_GT(forecast.learned_tokens(), forecast.known_tokens() + tokens / 2);
    return forecast.judged().same_token[1].RecallAt(0.6);
  }

  Rng rng_{TestSeed()};
};

TEST_F(ScoreLearnerTest, ATextThatWasLearnedFromMakesTheFirstTokensMissesKnown) {
  const ScoreTables tables = LearnedFrom(1000);
  const double without = RecallWith(std::nullopt, 60), with = RecallWith(tables, 60);
  EXPECT_GT(with, 0.6);
  EXPECT_LT(without, with - 0.2);
}

TEST_F(ScoreLearnerTest, SaysOfWhatItHasLearned) {
  const ScoreTables tables = LearnedFrom(200);
  EXPECT_EQ(tables.grid, kTextGrid);
  EXPECT_EQ(tables.experts_per_token, 1u);
  EXPECT_EQ(tables.layers, (std::vector<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_GE(tables.tokens, 199u);  // the first one shows the layers
  EXPECT_EQ(tables.weights.size(), ScoreMap::WeightCount(kTextGrid));
  EXPECT_EQ(tables.moments.size(), ScoreMap::MomentCount(kTextGrid));
  EXPECT_EQ(tables.fits.size(), MissChance::NumberCount(ScoreMap::ReachFor(kTextGrid)));
  ASSERT_EQ(tables.shares.size(), kTextGrid.Count());
  double sum = 0;
  for (const float share : tables.shares) sum += static_cast<double>(share);
  EXPECT_NEAR(sum, 4, 1e-4);  // each of four layers chose one
  EXPECT_EQ(tables.shares[0], 0.0f);
}

TEST_F(ScoreLearnerTest, GatesThatWereAskedEarlyTeachWhatTheyAreWorth) {
  rng_ = Rng(7);
  const ScoreTables without = LearnedFrom(300);
  rng_ = Rng(7);
  const ScoreTables with = LearnedFrom(300, /*with_gates=*/true);
  EXPECT_EQ(with.weights, without.weights);
  EXPECT_NE(with.fits, without.fits);
}

}  // namespace
}  // namespace troupe
