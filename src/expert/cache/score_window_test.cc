#include "expert/cache/score_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "base/rng.h"
#include "expert/cache/askers_for_test.h"
#include "expert/cache/expert_cache.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kWindowGrid{.layers = 2, .experts = 3};

void Score(ScoreWindow& policy, std::uint32_t layer, std::vector<float> rows) {
  policy.OnScored(layer, rows);
}

const std::vector<ExpertId> kAll = {{0, 0}, {0, 1}, {0, 2}};

TEST(ScoreWindowTest, GivesUpTheLeastMeanScoreWhetherChosenOrNot) {
  ScoreWindow policy(kWindowGrid, 4);
  Score(policy, 0, {0.6f, 0.3f, 0.1f});
  Score(policy, 0, {0.1f, 0.2f, 0.7f});
  EXPECT_FLOAT_EQ(policy.MeanScore({0, 1}), 0.25f);
  EXPECT_EQ(policy.Choose(kAll), 1u);
}

TEST(ScoreWindowTest, ForgetsWhatIsOlderThanTheWindow) {
  ScoreWindow policy(kWindowGrid, 2);
  Score(policy, 0, {0.9f, 0.0f, 0.1f});
  Score(policy, 0, {0.1f, 0.5f, 0.4f, 0.1f, 0.5f, 0.4f});
  EXPECT_FLOAT_EQ(policy.MeanScore({0, 0}), 0.1f);
  EXPECT_EQ(policy.Choose(kAll), 0u);
}

TEST(ScoreWindowTest, OfALongPromptTakesTheLastTokens) {
  ScoreWindow policy(kWindowGrid, 1);
  Score(policy, 0, {0.9f, 0.0f, 0.1f, 0.2f, 0.3f, 0.5f});
  EXPECT_FLOAT_EQ(policy.MeanScore({0, 2}), 0.5f);
}

TEST(ScoreWindowTest, ShieldsWhatTheLayerUnderWayAskedForUntilTheNextBegins) {
  ScoreWindow policy(kWindowGrid, 4);
  Score(policy, 0, {0.6f, 0.3f, 0.1f});
  policy.OnAsked({0, 2}, One(1));
  EXPECT_EQ(policy.Choose(kAll), 1u);
  EXPECT_EQ(policy.shielded(), 1u);
  Score(policy, 1, {0.6f, 0.3f, 0.1f});
  EXPECT_EQ(policy.Choose(kAll), 2u);
  EXPECT_EQ(policy.shielded(), 1u);
}

TEST(ScoreWindowTest, GivesUpAShieldedOneWhereThereIsNoOther) {
  ScoreWindow policy(kWindowGrid, 4);
  Score(policy, 0, {0.6f, 0.3f, 0.1f});
  for (const ExpertId id : kAll) policy.OnAsked(id, One(1));
  EXPECT_EQ(policy.Choose(kAll), 2u);
}

TEST(ScoreWindowTest, WithoutScoresGivesUpTheOneAskedForLongestAgo) {
  ScoreWindow policy(kWindowGrid, 4);
  for (const std::uint32_t e : {2u, 0u, 1u}) policy.OnAsked({0, e}, One(1));
  policy.OnAsked({1, 0}, One(1));
  EXPECT_EQ(policy.Choose(kAll), 2u);
}

TEST(ScoreWindowTest, KeepsTheMeansThatSummingTheWindowAnewGives) {
  Rng rng(TestSeed());
  ScoreWindow policy(kWindowGrid, 7);
  std::deque<std::vector<float>> window;
  for (int step = 0; step < 3000; ++step) {
    std::vector<float> row(3);
    for (float& score : row) score = static_cast<float>(rng.Uniform());
    Score(policy, 1, row);
    window.push_back(row);
    if (window.size() > 7) window.pop_front();
    for (std::uint32_t e = 0; e < 3; ++e) {
      double sum = 0;
      for (const auto& past : window) sum += past[e];
      ASSERT_NEAR(policy.MeanScore({1, e}), sum / static_cast<double>(window.size()), 1e-12);
    }
  }
}

TEST(ScoreWindowTest, ServesACache) {
  auto policy = std::make_unique<ScoreWindow>(kWindowGrid, 4);
  ScoreWindow& scores = *policy;
  ExpertCache cache({.grid = kWindowGrid, .slots = 2, .quotas = {}}, std::move(policy));
  Score(scores, 0, {0.6f, 0.3f, 0.1f});
  for (const std::uint32_t e : {0u, 2u, 1u}) {
    cache.Ask({0, e}, 1);
    const auto admission = cache.Admit({0, e});
    ASSERT_TRUE(admission.has_value());
    cache.OnLoaded({0, e});
    EXPECT_EQ(admission->evicted.has_value(), e == 1);
    if (e == 2) Score(scores, 0, {0.6f, 0.3f, 0.1f});  // a new token: no shield
  }
  EXPECT_EQ(cache.Find({0, 2}), Residence::kAbsent);
}

}  // namespace
}  // namespace troupe
