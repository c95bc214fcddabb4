// Demands of a MissFlow and the slots of its cache: what is given when, and to whom a failure goes.
#include "expert/flow/miss_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "expert/flow/miss_flow_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(MissFlowTest, ResidentsAreGivenAtOnceAndMissesAsTheirLoadsEnd) {
  BringIn(0, {1});
  const DemandId id = Ask(0, {1, 2, 3});
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 2}, ExpertId{0, 3}));
  EXPECT_THAT(Give(id), ElementsAre(1));
  EXPECT_TRUE(flow_->MustWait(id));
  End({0, 3});
  EXPECT_FALSE(flow_->MustWait(id));
  EXPECT_THAT(Give(id), ElementsAre(3));
  End({0, 2});
  EXPECT_THAT(Give(id), ElementsAre(2));
  EXPECT_TRUE(flow_->IsDone(id));
}

TEST_F(MissFlowTest, TwoOpenDemandsForTheSameExpertShareItsLoad) {
  const DemandId first = Ask(0, {1, 2});
  const DemandId second = Ask(0, {2, 3}, DemandOf::kPeer);
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 1}, ExpertId{0, 2}, ExpertId{0, 3}));
  End({0, 2});
  EXPECT_THAT(Give(first), ElementsAre(2));
  EXPECT_THAT(Give(second), ElementsAre(2));
  flow_->Close(first);
  EXPECT_TRUE(flow_->MustWait(second));
  End({0, 3});
  EXPECT_THAT(Give(second), ElementsAre(3));
}

TEST_F(MissFlowTest, ACacheOfTwoSlotsLetsALayerPassThroughIt) {
  Open(2);
  const DemandId id = Ask(0, {0, 1, 2, 3, 4});
  std::vector<std::uint32_t> given;
  while (!flow_->IsDone(id)) {
    flow_->LetGo(id);
    flow_->Continue();
    EXPECT_LE(loads_.under_way().size(), 2u);
    if (flow_->MustWait(id)) End(UnderWay().front());
    for (const std::uint32_t e : Give(id)) given.push_back(e);
  }
  EXPECT_THAT(given, UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST_F(MissFlowTest, WhatIsGivenKeepsItsSlotUntilItIsLetGo) {
  Open(1);
  const DemandId id = Ask(0, {0, 1});
  flow_->Continue();
  End({0, 0});
  EXPECT_THAT(Give(id), ElementsAre(0));
  flow_->Continue();
  EXPECT_THAT(UnderWay(), IsEmpty());
  flow_->LetGo(id);
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 1}));
}

TEST_F(MissFlowTest, ADemandThatFindsAllSlotsHeldForAnotherGetsThemWhenThatIsClosed) {
  Open(1);
  const DemandId first = Ask(0, {0});
  flow_->Continue();
  End({0, 0});
  EXPECT_THAT(Give(first), ElementsAre(0));
  const DemandId second = Ask(0, {1}, DemandOf::kPeer);
  flow_->Continue();
  EXPECT_FALSE(flow_->MustWait(second));  // no load would help
  EXPECT_THAT(Give(second), IsEmpty());
  flow_->Close(first);
  EXPECT_TRUE(flow_->MustWait(second));
  End({0, 1});
  EXPECT_THAT(Give(second), ElementsAre(1));
}

TEST_F(MissFlowTest, InOrderMissesAreGivenAsTheyWereAskedForWhileSomeHaveNoSlot) {
  Open(2, {.in_order = true});
  const DemandId id = Ask(0, {0, 1, 2});
  flow_->Continue();
  End({0, 1});
  EXPECT_THAT(Give(id), IsEmpty());
  EXPECT_TRUE(flow_->MustWait(id));
  End({0, 0});
  EXPECT_FALSE(flow_->MustWait(id));
  EXPECT_THAT(Give(id), ElementsAre(0));
  flow_->LetGo(id);
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 2}));
  EXPECT_THAT(Give(id), ElementsAre(1));  // all have their slots
}

TEST_F(MissFlowTest, AFailureIsTheErrorOfThoseWhoWaitForItAlone) {
  const DemandId first = Ask(0, {1});
  const DemandId second = Ask(0, {2}, DemandOf::kPeer);
  flow_->Continue();
  End({0, 1}, DataLoss("torn"));
  EXPECT_FALSE(flow_->MustWait(first));
  EXPECT_THAT(flow_->Give(first).status().message(), HasSubstr("torn"));
  flow_->Close(first);
  End({0, 2});
  EXPECT_THAT(Give(second), ElementsAre(2));
  const DemandId again = Ask(0, {1});
  flow_->Continue();
  End({0, 1});
  EXPECT_THAT(Give(again), ElementsAre(1));
}

TEST_F(MissFlowTest, AFailureThatNobodyWaitsForFailsNobody) {
  const DemandId first = Ask(0, {1});
  flow_->Continue();
  flow_->Close(first);
  const DemandId second = Ask(0, {2});
  End({0, 1}, DataLoss("torn"));
  flow_->Continue();
  End({0, 2});
  EXPECT_THAT(Give(second), ElementsAre(2));
}

TEST_F(MissFlowTest, AMissTellsHowLongItWasWaitedFor) {
  const DemandId id = Ask(0, {1, 2});
  flow_->Continue();
  now_ += 999'999;
  End({0, 1});
  flow_->OnStalled(1'000'000);
  EXPECT_THAT(Give(id), ElementsAre(1));
  ASSERT_EQ(flow_->GivenMisses(id).size(), 1u);
  EXPECT_DOUBLE_EQ(flow_->GivenMisses(id)[0].load_seconds, 1e-3);
  EXPECT_DOUBLE_EQ(flow_->GivenMisses(id)[0].waited_seconds, 1e-3);
  EXPECT_DOUBLE_EQ(flow_->usage().stall_seconds, 1e-3);
}

}  // namespace
}  // namespace troupe
