// What the eviction policy of a MissFlow is told: who asked, and of drafts what the text has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "expert/flow/miss_flow_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;

TEST_F(MissFlowTest, ThePolicyLearnsWhoseRowsAsked) {
  flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kDecode));
  std::vector<ExpertChoice> chosen = {{1, 1}, {2, 1}, {2, 1}, {3, 1}};
  flow_->OnRouted(0, {}, chosen);
  const std::vector<ExpertDemand> demands = {{1, 1}, {2, 2}, {3, 1}};
  flow_->Ask(0, demands, 0);
  using Ask = ListeningLru::Ask;
  EXPECT_THAT(asks_, ElementsAre(Ask{{0, 1}, {{0, 1}}}, Ask{{0, 2}, {{0, 1}, {1, 1}}},
                                 Ask{{0, 3}, {{1, 1}}}));
  const std::vector<GroupUse> uses = flow_->TakeGroupUses();
  EXPECT_THAT(uses, ElementsAre(GroupUse{.misses = 2}, GroupUse{.misses = 2}));
}

// The policy sees the asks of the text's tokens in their order, whether a draft brought them or
// not.
TEST_F(MissFlowTest, ThePolicyLearnsOfADraftWhatTheTextHas) {
  const std::vector<std::vector<std::uint32_t>> chosen = {{0, 1}, {2, 3}, {1, 4}, {6, 7}};
  const auto pass = [&](std::size_t first, std::uint32_t rows, std::uint32_t guessed) {
    flow_->OnPassBegins({.groups = {{.sequence = 0, .rows = rows, .guessed = guessed}}});
    for (std::uint32_t layer = 0; layer < kFlowGrid.layers; ++layer) {
      std::vector<ExpertChoice> choices;
      std::set<std::uint32_t> needed;
      for (std::size_t row = first; row < first + rows; ++row) {
        for (const std::uint32_t expert : chosen[row]) {
          choices.push_back({.expert = expert, .weight = 1});
          needed.insert(expert);
        }
      }
      flow_->OnRouted(layer, {}, choices);
      BringIn(layer, {needed.begin(), needed.end()});
    }
  };
  Open(24);
  for (std::size_t row = 0; row < 3; ++row) pass(row, 1, 0);
  const auto one_by_one = std::exchange(asks_, {});
  ASSERT_EQ(one_by_one.size(), 3 * 2 * kFlowGrid.layers);
  Open(24);
  pass(0, 4, 3);
  const std::uint32_t right = 2;
  flow_->OnGuessesChecked({&right, 1});
  EXPECT_EQ(asks_, one_by_one);
  EXPECT_EQ(flow_->guesses_learned(), 2u);
  EXPECT_EQ(flow_->cache().Find({0, 7}), Residence::kResident) << "read, though it was wrong";
}

// Else a draft's experts would go for those of the same draft's next layers, as the policy has not
// heard of them for long.
TEST_F(MissFlowTest, WhatGuessesAloneUseStaysUntilTheyAreChecked) {
  const auto pass = [&](const std::vector<std::vector<std::uint32_t>>& layers) {
    flow_->OnPassBegins({.groups = {{.sequence = 0, .rows = 2, .guessed = 1}}});
    for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
      std::vector<ExpertChoice> choices;
      for (const std::uint32_t e : layers[layer]) choices.push_back({.expert = e, .weight = 1});
      flow_->OnRouted(layer, {}, choices);
      BringIn(layer, layers[layer]);
    }
  };
  for (const std::uint32_t right : {1u, 0u}) {
    Open(8);
    pass({{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}});
    for (const std::uint32_t guessed : {2u, 3u}) {
      EXPECT_EQ(flow_->cache().Find({0, guessed}), Residence::kResident) << "before the check";
    }
    flow_->OnGuessesChecked({&right, 1});
    flow_->OnPassBegins(OneGroup(0, Phase::kDecode, 1));
    BringIn(0, {4, 5, 6});
    EXPECT_EQ(flow_->cache().Find({0, 3}), right == 1 ? Residence::kResident : Residence::kAbsent);
  }
}

}  // namespace
}  // namespace troupe
