#include "expert/flow/pass_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;

PassFacts Mixed() {
  return {.first_layer = 0,
          .groups = {{.sequence = 4, .phase = Phase::kPrompt, .rows = 2},
                     {.sequence = 7, .phase = Phase::kDecode, .rows = 1},
                     {.sequence = 2, .phase = Phase::kDecode, .exact = true, .rows = 1}}};
}

const std::vector<ExpertChoice> kChosen = {{0, 1}, {1, 1},         {0, 1}, {2, 1},
                                           {0, 1}, {kNoExpert, 0}, {3, 1}, {0, 1}};

TEST(PassChoices, CountsWhoseRowsChoseAnExpert) {
  PassChoices choices(4);
  choices.OnPassBegins(Mixed());
  choices.Count(1, kChosen);
  using D = ExpertDemand;
  EXPECT_THAT(choices.Demands(), ElementsAre(D{0, 4}, D{1, 1}, D{2, 1}, D{3, 1}));
  EXPECT_THAT(choices.AskersOf(1, {0, 4}), ElementsAre(Asker{4, 2}, Asker{7, 1}, Asker{2, 1}));
  EXPECT_THAT(choices.AskersOf(1, {3, 1}), ElementsAre(Asker{2, 1}));
  const RowKinds kinds = choices.KindsOf(1, {0, 4});
  EXPECT_EQ(kinds.prompt, 2u);
  EXPECT_EQ(kinds.decode, 1u);
  EXPECT_EQ(kinds.exact, 1u);
}

TEST(PassChoices, SplitsALayersDemandsBySequence) {
  PassChoices choices(4);
  choices.OnPassBegins(Mixed());
  choices.Count(1, kChosen);
  const std::vector<ExpertDemand> demands = {{0, 4}, {1, 1}, {2, 1}, {3, 1}};
  const LayerChoices split = choices.Of(1, demands);
  ASSERT_EQ(split.by_sequence().size(), 3u);
  using D = ExpertDemand;
  EXPECT_THAT(split.by_sequence()[0].demands, ElementsAre(D{0, 2}, D{1, 1}, D{2, 1}));
  EXPECT_THAT(split.by_sequence()[1].demands, ElementsAre(D{0, 1}));
  EXPECT_EQ(split.by_sequence()[2].sequence, 2u);
}

TEST(PassChoices, RowsOfADraftNeedExpertsAndAreNobodysYet) {
  PassChoices choices(4);
  choices.OnPassBegins({.groups = {{.sequence = 4, .rows = 3, .guessed = 2}}});
  const std::vector<ExpertChoice> chosen = {{0, 1}, {1, 1}, {0, 1}, {2, 1}, {2, 1}, {3, 1}};
  choices.Count(1, chosen);
  using D = ExpertDemand;
  const std::vector<ExpertDemand> demands = {D{0, 2}, D{1, 1}, D{2, 2}, D{3, 1}};
  EXPECT_THAT(choices.Demands(), testing::ElementsAreArray(demands));
  EXPECT_THAT(choices.AskersOf(1, {0, 2}), ElementsAre(Asker{4, 1}));
  EXPECT_THAT(choices.AskersOf(1, {2, 2}), testing::IsEmpty());
  EXPECT_EQ(choices.RowsOf(1, 0, {2, 2}), 2u);
  const LayerChoices split = choices.Of(1, demands);
  EXPECT_EQ(split.demands().size(), 4u);
  ASSERT_EQ(split.by_sequence().size(), 1u);
  EXPECT_THAT(split.by_sequence()[0].demands, ElementsAre(D{0, 1}, D{1, 1}));
}

TEST(PassChoices, WithoutCountsAllRowsAreOfTheFirstGroup) {
  PassChoices choices(4);
  choices.OnPassBegins(Mixed());
  choices.Count(1, kChosen);
  EXPECT_THAT(choices.AskersOf(2, {3, 5}), ElementsAre(Asker{4, 5}));  // of another layer
  choices.OnPassBegins(OneGroup(0, Phase::kDecode, 3));
  EXPECT_THAT(choices.AskersOf(1, {3, 2}), ElementsAre(Asker{0, 2}));
  EXPECT_EQ(choices.KindsOf(1, {3, 2}).decode, 2u);
}

}  // namespace
}  // namespace troupe
