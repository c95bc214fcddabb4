#include "expert/forecast/shallow_choice.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::uint32_t kLayers = 4, kExperts = 8;

// Tokens that choose one expert a layer at random, all alike or the first ones more often.
RecordedRoutes RandomRoutes(std::size_t tokens, bool skewed = false) {
  RecordedRoutes routes{.grid = {.layers = kLayers, .experts = kExperts},
                        .first_layer = 0,
                        .experts_per_token = 1,
                        .ids = {}};
  Rng rng(TestSeed());
  for (std::size_t i = 0; i < tokens * kLayers; ++i) {
    const auto most = skewed ? rng.Below(kExperts) + 1 : kExperts;
    routes.ids.push_back(static_cast<std::uint16_t>(rng.Below(most)));
  }
  return routes;
}

TEST(ShallowChoiceTest, LayersThatForecastsDoNotCoverAreWorthKeeping) {
  RecordedRoutes routes = RandomRoutes(500);
  for (std::size_t i = 0; i < routes.ids.size(); ++i) {
    if (i % kLayers < 2) routes.ids[i] %= 6;  // their slots save more than the others'
  }
  const std::vector<double> covered = {0, 0, 1, 1};
  const auto costs = CostsOfShallow(routes, covered, 18, 2, 3);
  ASSERT_EQ(costs.size(), 4u);
  EXPECT_EQ(BestShallow(costs), 2u);
  // Everything fits that is kept: what is left are the first questions.
  EXPECT_LT(costs[2].uncovered, 2 * kExperts / 500.0 + 1e-9);
  EXPECT_GT(costs[0].uncovered, 0.4);
}

TEST(ShallowChoiceTest, WhereForecastsCoverAllLayersAlikeNothingIsGained) {
  const RecordedRoutes routes = RandomRoutes(2000, /*skewed=*/true);
  const std::vector<double> covered(kLayers, 1.0);
  EXPECT_EQ(BestShallow(CostsOfShallow(routes, covered, 16, 0, 3)), 0u);
}

TEST(ShallowChoiceTest, MissesThatArePredictedStillTakeTheLink) {
  const ShallowCost none{.layers = 0, .misses = 8, .uncovered = 2};
  const ShallowCost one{.layers = 1, .misses = 8, .uncovered = 1};
  const ShallowCost two{.layers = 2, .misses = 8.5, .uncovered = 0};
  EXPECT_EQ(BestShallow(std::vector{none, one, two}), 1u);
  EXPECT_EQ(BestShallow(std::vector{none, two}), 0u);
  EXPECT_EQ(BestShallow({}), 0u);
}

TEST(ShallowChoiceTest, ACacheForEverythingMissesOnceAnExpert) {
  const RecordedRoutes routes = RandomRoutes(500);
  const std::vector<double> covered(kLayers, 0.0);
  for (const ShallowCost& cost : CostsOfShallow(routes, covered, kLayers * kExperts, 0, 3)) {
    EXPECT_DOUBLE_EQ(cost.misses, kLayers * kExperts / 500.0);
    EXPECT_DOUBLE_EQ(cost.uncovered, cost.misses);
  }
}

}  // namespace
}  // namespace troupe
