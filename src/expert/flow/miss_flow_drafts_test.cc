// Passes that draft by what is in memory: they ask for nothing else, and leave no trace but reads.
#include <gmock/gmock.h>

#include "expert/flow/miss_flow_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

PassFacts DraftPass(std::uint32_t position) {
  PassFacts pass{.first_layer = 0,
                 .groups = {{.request = 10, .exact = true, .position = position, .rows = 1}}};
  pass.groups.front().guessed = 1;
  pass.drafts = true;
  return pass;
}

class MissFlowDraftsTest : public MissFlowTest {
 protected:
  void SetUp() override { Open(6, {.routing = {}, .drafts = true}); }
  // What is left of a router's choice in a draft's pass; what is asked for is given and closed.
  std::vector<std::uint32_t> Draft(std::uint32_t layer, const std::vector<std::uint32_t>& experts) {
    std::vector<ExpertChoice> chosen;
    for (const std::uint32_t e : experts) chosen.push_back({.expert = e, .weight = 0.5F});
    flow_->OnRouted(layer, {}, chosen);
    std::vector<std::uint32_t> left;
    for (const ExpertChoice& choice : chosen) {
      if (choice.expert != kNoExpert) left.push_back(choice.expert);
    }
    const DemandId id = Ask(layer, left);
    EXPECT_FALSE(flow_->MustWait(id));
    std::vector<std::uint32_t> given = Give(id);
    EXPECT_TRUE(flow_->IsDone(id));
    flow_->LetGo(id);
    flow_->Continue();
    flow_->Close(id);
    return given;
  }
};

TEST_F(MissFlowDraftsTest, AreAnsweredByWhatIsThereAlone) {
  flow_->OnPassBegins(OneGroup(0, Phase::kDecode, 1));
  BringIn(0, {1, 2});
  flow_->OnPassBegins(DraftPass(1));
  EXPECT_EQ(flow_->forecast_layers(), 0u);
  EXPECT_THAT(Draft(0, {1, 5}), ElementsAre(1));
  EXPECT_THAT(Draft(1, {3, 4}), IsEmpty());
}

TEST_F(MissFlowDraftsTest, TeachThePolicyNothingAndCountAsNoAsk) {
  flow_->OnPassBegins(OneGroup(0, Phase::kDecode, 1));
  BringIn(0, {1, 2});
  const auto asked = asks_;
  const ExpertUsage before = flow_->usage();
  flow_->OnPassBegins(DraftPass(1));
  Draft(0, {1, 5});
  Draft(1, {3, 4});
  EXPECT_EQ(asks_, asked);
  const ExpertUsage more = flow_->usage().Since(before);
  EXPECT_EQ(more.hits + more.misses + more.use_hits + more.use_misses, 0u);
  EXPECT_EQ(more.dropped + more.loaded + more.waited, 0u);
  EXPECT_EQ(more.draft_reads, 2u);
  for (const LayerHits& layer : more.layers) EXPECT_EQ(layer.asks, 0u);
}

TEST_F(MissFlowDraftsTest, WhatTheyNameIsReadWhileTheyGoOnAndFoundByTheCheck) {
  flow_->OnPassBegins(DraftPass(1));
  Draft(0, {5});
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 5}));
  for (const auto& load : loads_.under_way()) EXPECT_EQ(load.urgency, Urgency::kPrefetch);
  End({0, 5});
  EXPECT_THAT(Draft(0, {5}), ElementsAre(5)) << "what has come is used at once";
  flow_->OnPassBegins(OneGroup(0, Phase::kDecode, 2, 1));
  const DemandId id = Ask(0, {5});
  EXPECT_THAT(Give(id), ElementsAre(5));
  EXPECT_EQ(flow_->usage().draft_reads_used, 1u);
  EXPECT_EQ(flow_->usage().hits, 1u);
}

TEST_F(MissFlowDraftsTest, DemandComesBeforeWhatTheyNamed) {
  Open(2, {.routing = {}, .drafts = true});
  flow_->OnPassBegins(DraftPass(1));
  std::vector<ExpertChoice> chosen = {{.expert = 6, .weight = 1}};
  flow_->OnRouted(1, {}, chosen);
  flow_->OnPassBegins(OneGroup(0, Phase::kDecode, 1, 1));
  const DemandId id = Ask(0, {0, 1, 2});
  flow_->Continue();
  EXPECT_THAT(UnderWay(), UnorderedElementsAre(ExpertId{0, 0}, ExpertId{0, 1}))
      << "one waits for a slot, so nothing is read ahead";
  flow_->Close(id);
}

TEST_F(MissFlowDraftsTest, ALoadThatFailsIsNobodysError) {
  flow_->OnPassBegins(DraftPass(1));
  Draft(0, {5});
  End({0, 5}, DataLoss("the disk is gone"));
  EXPECT_THAT(Draft(1, {5}), IsEmpty());
  flow_->OnPassBegins(OneGroup(0, Phase::kDecode, 1, 1));
  const DemandId id = Ask(0, {5});
  flow_->Continue();
  EXPECT_FALSE(flow_->IsDone(id));
  End({0, 5});
  EXPECT_THAT(Give(id), ElementsAre(5));
}

}  // namespace
}  // namespace troupe
