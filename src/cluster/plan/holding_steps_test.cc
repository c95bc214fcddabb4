#include "cluster/plan/holding_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kStepGrid{.layers = 2, .experts = 4};

HoldingFacts Facts(std::set<ExpertId> held, std::uint32_t most, std::set<ExpertId> may_go = {}) {
  HoldingFacts facts{.grid = kStepGrid,
                     .held = std::vector<std::uint8_t>(kStepGrid.Count()),
                     .most_held = most,
                     .may_go = [may_go](ExpertId id) { return may_go.contains(id); }};
  for (const ExpertId id : held) facts.held[kStepGrid.Index(id)] = 1;
  return facts;
}

const ClusterPlan::Node kWanted{.name = "a", .held = {{0, 1}, {2}}};

TEST(HoldingSteps, BringsInLayerByLayerWhatFits) {
  EXPECT_EQ(NextStep(kWanted, Facts({}, 3)), HoldingStep(HoldStep{0, {0, 1}}));
  EXPECT_EQ(NextStep(kWanted, Facts({{0, 0}}, 2)), HoldingStep(HoldStep{0, {1}}));
  EXPECT_EQ(NextStep(kWanted, Facts({{0, 0}, {0, 1}}, 3)), HoldingStep(HoldStep{1, {2}}));
  EXPECT_EQ(NextStep(kWanted, Facts({{0, 0}, {0, 1}, {1, 2}}, 3)), std::nullopt);
}

TEST(HoldingSteps, WhatIsOfTheFirstOnesLayerAndComesSoonComesWithIt) {
  ClusterPlan::Node wanted{.name = "a", .held = {{0, 1, 2}, {0, 1, 2, 3}}};
  wanted.come = {{1, 3}, {0, 2}, {1, 0}, {0, 0}, {0, 1}, {1, 2}, {1, 1}};
  HoldingFacts facts = Facts({}, 8);
  EXPECT_EQ(NextStep(wanted, facts), HoldingStep(HoldStep{1, {3, 0}}));
  facts.at_once = 16;
  EXPECT_EQ(NextStep(wanted, facts), HoldingStep(HoldStep{1, {3, 0, 2, 1}}));
  facts.at_once = 1;  // four steps bring the first four, and no later one is brought before them
  EXPECT_EQ(NextStep(wanted, facts), HoldingStep(HoldStep{1, {3}}));
}

TEST(HoldingSteps, LetsGoWhatMayGo) {
  const std::set<ExpertId> held = {{0, 2}, {0, 3}, {1, 0}};
  EXPECT_EQ(NextStep(kWanted, Facts(held, 3, {{1, 0}})), HoldingStep(ReleaseStep{{1, 0}}));
  EXPECT_EQ(NextStep(kWanted, Facts(held, 3, {{0, 3}})), HoldingStep(ReleaseStep{{0, 3}}));
}

TEST(HoldingSteps, WhereMemoryIsFullAndNothingMayGoOneComesAndThenItWaits) {
  EXPECT_EQ(NextStep(kWanted, Facts({{0, 2}, {0, 3}, {1, 0}}, 3)), HoldingStep(HoldStep{0, {0}}));
  EXPECT_EQ(NextStep(kWanted, Facts({{0, 0}, {0, 2}, {0, 3}, {1, 0}}, 3)), std::nullopt);
  EXPECT_EQ(NextStep(kWanted, Facts({{0, 0}, {0, 2}, {0, 3}, {1, 0}}, 3, {{0, 3}})),
            HoldingStep(ReleaseStep{{0, 3}}));
}

TEST(HoldingSteps, WhatIsLeftOverStaysUntilItMayGo) {
  const std::set<ExpertId> held = {{0, 0}, {0, 1}, {1, 2}, {1, 3}};
  EXPECT_EQ(NextStep(kWanted, Facts(held, 8)), std::nullopt);
  EXPECT_EQ(NextStep(kWanted, Facts(held, 8, {{1, 3}})), HoldingStep(ReleaseStep{{1, 3}}));
}

TEST(HoldingSteps, APlanThatExceedsTheMemoryFillsItAndNoMore) {
  EXPECT_EQ(NextStep(kWanted, Facts({{0, 0}, {0, 1}}, 2)), std::nullopt);
}

TEST(HoldingSteps, FromAnywhereToAnywhereInFewSteps) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    std::vector<ExpertId> all;
    for (std::uint32_t layer = 0; layer < kStepGrid.layers; ++layer) {
      for (std::uint32_t expert = 0; expert < kStepGrid.experts; ++expert) {
        all.push_back({layer, expert});
      }
    }
    const auto most = static_cast<std::uint32_t>(1 + random() % kStepGrid.Count());
    std::ranges::shuffle(all, random);
    std::set<ExpertId> held(all.begin(),
                            all.begin() + static_cast<std::ptrdiff_t>(random() % (most + 1)));
    std::ranges::shuffle(all, random);
    std::set<ExpertId> wanted(all.begin(),
                              all.begin() + static_cast<std::ptrdiff_t>(random() % (most + 1)));
    ClusterPlan::Node node{.name = "a", .held = std::vector<std::vector<std::uint32_t>>(2)};
    for (const ExpertId id : wanted) node.held[id.layer].push_back(id.expert);
    int steps = 0;
    while (const auto step = NextStep(node, Facts(held, most, {all.begin(), all.end()}))) {
      ASSERT_LT(++steps, 20);
      if (const auto* hold = std::get_if<HoldStep>(&*step)) {
        for (const std::uint32_t expert : hold->experts) {
          ASSERT_TRUE(held.insert({hold->layer, expert}).second);
        }
      } else {
        ASSERT_EQ(held.erase(std::get<ReleaseStep>(*step).id), 1u);
      }
      ASSERT_LE(held.size(), most);
    }
    EXPECT_EQ(held, wanted);
  }
}

}  // namespace
}  // namespace troupe
