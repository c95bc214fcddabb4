#include "expert/forecast/miss_chance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(MissChance, BeginsWithTheForecastsOwnChance) {
  const MissChance chance(3);
  EXPECT_NEAR(chance.Of(1, {.logit = 0}), 0.5, 1e-6);
  EXPECT_NEAR(chance.Of(3, {.logit = -2, .margin = -1, .popularity = 1, .age = 3}),
              1 / (1 + std::exp(2.0)), 1e-6);
}

// Forecasts that promise too much, the more the longer ago the expert was asked for.
TEST(MissChance, ComesToMeanWhatItSays) {
  Rng rng(TestSeed());
  MissChance chance(2);
  double promised = 0, came = 0, squares = 0;
  for (int i = 0; i < 60'000; ++i) {
    const ExpertSigns signs{.logit = static_cast<float>(2 * rng.Normal()),
                            .margin = 0,
                            .popularity = static_cast<float>(rng.Normal()),
                            .age = static_cast<float>(4 * rng.Uniform())};
    const double logit = 0.5 * signs.logit - 0.4 * signs.age + 0.3 * signs.popularity - 0.5;
    const double truth = 1 / (1 + std::exp(-logit));
    const bool asked = rng.Uniform() < truth;
    if (i >= 50'000) {
      const double said = chance.Of(2, signs);
      promised += said;
      came += asked ? 1 : 0;
      squares += (said - truth) * (said - truth);
    }
    chance.Learn(2, signs, asked);
  }
  EXPECT_NEAR(promised / came, 1, 0.08);
  EXPECT_LT(std::sqrt(squares / 10'000), 0.05);
  EXPECT_NEAR(chance.Of(1, {.logit = 1}), 1 / (1 + std::exp(-1.0)), 1e-6) << "another distance";
}

TEST(ExpertPopularity, TellsHowOftenAndHowRecentlyALayerChose) {
  ExpertPopularity popularity({.layers = 2, .experts = 4}, 1);
  for (int i = 0; i < 200; ++i) {
    const std::vector<ExpertDemand> demands = {{.expert = i % 4 == 0 ? 1u : 2u, .tokens = 1}};
    popularity.OnAsked(1, demands);
  }
  ExpertSigns rare, often, never, other;
  popularity.Describe({1, 1}, rare);
  popularity.Describe({1, 2}, often);
  popularity.Describe({1, 3}, never);
  popularity.Describe({0, 2}, other);
  EXPECT_GT(often.popularity, rare.popularity);
  EXPECT_GT(rare.popularity, never.popularity);
  EXPECT_EQ(often.age, 0);
  EXPECT_FLOAT_EQ(rare.age, std::log1p(3.0f));
  EXPECT_FLOAT_EQ(never.age, std::log1p(200.0f));
  EXPECT_EQ(other.age, 0);
}

}  // namespace
}  // namespace troupe
