#include "runtime/route_heat.h"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe {
namespace {

// Two experts of four a token.
class RouteHeatTest : public testing::Test {
 protected:
  void Pass(std::uint32_t layer, std::vector<std::uint32_t> experts) {
    std::vector<ExpertChoice> chosen;
    for (const std::uint32_t expert : experts) chosen.push_back({.expert = expert, .weight = 0.5f});
    heat_.PassBegins(OneGroup(0, Phase::kDecode, static_cast<std::uint32_t>(experts.size() / 2)));
    heat_.Routed(layer, chosen, {});
    heat_.PassEnded();
  }
  float Of(std::uint32_t layer, std::uint32_t expert) { return heat_.Look()[layer * 4 + expert]; }

  RouteHeat heat_{{.layers = 2, .experts = 4}, 2};
};

TEST_F(RouteHeatTest, BeginsCold) {
  for (const float share : heat_.Look()) EXPECT_EQ(share, 0);
}

TEST_F(RouteHeatTest, GoesToTheShareOfTokensThatChoseTheExpert) {
  for (int look = 0; look < 40; ++look) {
    for (int pass = 0; pass < 32; ++pass) Pass(1, {0, 1, 0, 2});  // two tokens
    heat_.Look();
  }
  EXPECT_NEAR(Of(1, 0), 1.0, 1e-5);
  EXPECT_NEAR(Of(1, 1), 0.5, 1e-5);
  EXPECT_NEAR(Of(1, 2), 0.5, 1e-5);
  EXPECT_EQ(Of(1, 3), 0);
  EXPECT_EQ(Of(0, 0), 0) << "a layer that did not run";
}

TEST_F(RouteHeatTest, OlderTokensCountLess) {
  Pass(0, {0, 1});
  const float first = Of(0, 0);
  EXPECT_NEAR(first, 1 - std::exp(-1 / RouteHeat::kMemory), 1e-6);
  for (int token = 0; token < static_cast<int>(RouteHeat::kMemory); ++token) Pass(0, {2, 3});
  EXPECT_NEAR(Of(0, 0), first * std::exp(-1.0), 1e-6);
  EXPECT_GT(Of(0, 2), 0.6);
}

TEST_F(RouteHeatTest, LeavesOutTheRowsOfDrafts) {
  heat_.PassBegins({.groups = {{.rows = 2, .guessed = 1}, {.sequence = 1, .rows = 1}}});
  const std::vector<ExpertChoice> chosen = {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {0, 1}, {1, 1}};
  heat_.Routed(0, chosen, {});
  EXPECT_GT(Of(0, 0), 0);
  EXPECT_EQ(Of(0, 2), 0);
}

TEST_F(RouteHeatTest, StaysAsItIsWhileNothingRuns) {
  Pass(0, {0, 1});
  const float before = Of(0, 0);
  EXPECT_EQ(Of(0, 0), before);
}

TEST_F(RouteHeatTest, CountsNoMoreWhenNobodyLooks) {
  std::vector<std::uint32_t> many(2 * RouteHeat::kMostUnseen + 2, 0);
  Pass(0, many);
  Pass(0, {1, 1});
  EXPECT_EQ(Of(0, 1), 0);
  EXPECT_NEAR(Of(0, 0), 2.0, 1e-5);  // twice a token, which no router does
  Pass(0, {1, 2});
  EXPECT_GT(Of(0, 1), 0) << "and goes on after a look";
}

}  // namespace
}  // namespace troupe
