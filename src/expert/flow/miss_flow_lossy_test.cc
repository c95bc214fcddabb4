// Low copies and substitution in a MissFlow, beside rows that are exact and get neither.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "expert/flow/miss_flow_for_test.h"
#include "expert/substitution/substitution_spec.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(MissFlowTest, APeersFullCopyWaitsUntilTheLowOneIsNotUsedAnyMore) {
  Open(2, {.routing = {.top_k = 1, .low_copies = true}, .low_copies = {.decode = true}});
  flow_->OnPassBegins(OneGroup(0, Phase::kDecode, 1));
  const DemandId low = Ask(0, {1});
  flow_->Continue();
  EXPECT_EQ(loads_.under_way()[0].copy, ExpertCopy::kLow);
  const DemandId full = Ask(0, {1}, DemandOf::kPeer);
  End({0, 1});
  EXPECT_EQ(flow_->Give(low).value()[0].copy, ExpertCopy::kLow);
  EXPECT_FALSE(flow_->MustWait(full));  // its low copy is computed with
  EXPECT_THAT(Give(full), IsEmpty());
  flow_->Close(low);
  EXPECT_TRUE(flow_->MustWait(full));
  EXPECT_EQ(loads_.under_way()[0].copy, ExpertCopy::kFull);
  End({0, 1});
  EXPECT_EQ(flow_->Give(full).value()[0].copy, ExpertCopy::kFull);
  EXPECT_EQ(flow_->usage().low_assignments, 1u);
}

TEST_F(MissFlowTest, AnExpertThatAnExactRowNeedsComesInFull) {
  Open(4, {.routing = {.top_k = 2, .low_copies = true}, .low_copies = {.decode = true}});
  flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kDecode, /*exact=*/true));
  std::vector<ExpertChoice> chosen = {{1, 1}, {2, 1}, {2, 1}, {3, 1}};
  flow_->OnRouted(0, {}, chosen);
  const std::vector<ExpertDemand> demands = {{1, 1}, {2, 2}, {3, 1}};
  flow_->Ask(0, demands, 0);
  flow_->Continue();
  const std::vector<ScriptedLoads::Load> begun = loads_.TakeBegun();
  EXPECT_EQ(begun.size(), 3u);
  for (const ScriptedLoads::Load& load : begun) {
    EXPECT_EQ(load.copy, load.id.expert == 1 ? ExpertCopy::kLow : ExpertCopy::kFull);
  }
}

TEST_F(MissFlowTest, ALowCopyThatAnExactRowFindsIsReadAgainInFullAndThenServesTheOthers) {
  Open(4, {.routing = {.top_k = 1, .low_copies = true}, .low_copies = {.decode = true}});
  const auto pass = [&](bool exact) {
    flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kDecode, exact));
    std::vector<ExpertChoice> chosen = {{1, 1}, {1, 1}};
    flow_->OnRouted(0, {}, chosen);
    const std::vector<ExpertDemand> demands = {{1, 2}};
    const DemandId id = flow_->Ask(0, demands, 0);
    flow_->Continue();
    if (flow_->MustWait(id)) End({0, 1});
    const ExpertCopy given = flow_->Give(id).value()[0].copy;
    flow_->Close(id);
    return given;
  };
  EXPECT_EQ(pass(/*exact=*/false), ExpertCopy::kLow);
  EXPECT_EQ(pass(/*exact=*/true), ExpertCopy::kFull);
  EXPECT_EQ(pass(/*exact=*/false), ExpertCopy::kFull);
  EXPECT_EQ(loads_.TakeBegun().size(), 2u);
}

TEST_F(MissFlowTest, ExactRowsAndPromptsAreNotSubstitutedAndTheirLoadsServeTheOthers) {
  for (const PassFacts& pass : {TwoSequences(Phase::kDecode, Phase::kDecode, /*exact=*/true),
                                TwoSequences(Phase::kDecode, Phase::kPrompt)}) {
    Open(4);
    flow_->set_substitution(ParseSubstitution("drop", {}, {.most_tokens = 2}).value());
    flow_->OnPassBegins(pass);
    ASSERT_TRUE(flow_->Substitutes());
    std::vector<ExpertChoice> chosen = {{1, 1}, {2, 1}, {2, 1}, {3, 1}};
    flow_->OnRouted(0, {}, chosen);
    // The first row loses 1; 2 is loaded for the second row in any case.
    EXPECT_THAT(chosen, ElementsAre(ExpertChoice{kNoExpert, 0}, ExpertChoice{2, 1},
                                    ExpertChoice{2, 1}, ExpertChoice{3, 1}));
    EXPECT_EQ(flow_->usage().dropped, 1u);
    EXPECT_EQ(flow_->TakeGroupUses()[0].dropped, 1u);
  }
}

TEST_F(MissFlowTest, TheLimitOfSubstitutionCountsDecodeRowsAlone) {
  flow_->set_substitution(ParseSubstitution("drop", {}, {.most_tokens = 1}).value());
  flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kPrompt));
  EXPECT_TRUE(flow_->Substitutes());
  flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kDecode));
  EXPECT_FALSE(flow_->Substitutes());
  flow_->OnPassBegins(OneGroup(0, Phase::kPrompt, 1));  // a prompt's last chunk
  EXPECT_FALSE(flow_->Substitutes());
}

}  // namespace
}  // namespace troupe
