// What a MissFlow loads though no row waits for it yet: what is expected, and what is only to be
// held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "expert/flow/miss_flow_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(MissFlowTest, ALoadWhoseLastByteHasComeWhenItIsAskedForIsWaitedFor) {
  Open(4, {.in_order = true}, /*predicts=*/true);
  guesses_ = {{.expert = 2, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{1, 2}));
  loads_.set_left(Bytes());
  const DemandId id = Ask(1, {2});
  EXPECT_TRUE(flow_->MustWait(id));
  End({1, 2});
  EXPECT_THAT(Give(id), ElementsAre(2));
}

TEST_F(MissFlowTest, ADemandOvertakesAPrefetchOfTheSameExpert) {
  Open(2, {}, /*predicts=*/true);
  guesses_ = {{.expert = 7, .weight = 1, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  ASSERT_EQ(loads_.under_way().size(), 1u);
  EXPECT_EQ(loads_.under_way()[0].urgency, Urgency::kPrefetch);
  const DemandId id = Ask(1, {7});
  EXPECT_THAT(loads_.TakePromoted(), ElementsAre(ExpertId{1, 7}));
  EXPECT_TRUE(flow_->MustWait(id));
  End({1, 7});
  EXPECT_THAT(Give(id), ElementsAre(7));
  EXPECT_EQ(flow_->usage().prefetch_late, 1u);
}

TEST_F(MissFlowTest, WhatWasReadAheadForNothingIsCancelledWhenItsLayerAsksForOthers) {
  Open(4, {}, /*predicts=*/true);
  guesses_ = {{.expert = 7, .weight = 1, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  const DemandId id = Ask(1, {2});
  EXPECT_THAT(UnderWay(), IsEmpty());
  EXPECT_EQ(flow_->cache().Find({1, 7}), Residence::kAbsent);
  EXPECT_EQ(flow_->usage().prefetch_cancelled, 1u);
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{1, 2}));
  flow_->Close(id);
}

TEST_F(MissFlowTest, OneThatWasCalledOffAndIsWantedAgainBeginsAnew) {
  Open(4, {}, /*predicts=*/true);
  loads_.set_cancel_says(CallOff::kEnding);
  guesses_ = {{.expert = 7, .weight = 1, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  flow_->Close(Ask(1, {2}));  // calls 7 off, which ends later
  const DemandId id = Ask(1, {7});
  EXPECT_TRUE(flow_->MustWait(id));
  End({1, 7});  // with kCancelled
  flow_->Continue();
  EXPECT_THAT(UnderWay(), testing::Contains(ExpertId{1, 7}));
  EXPECT_EQ(flow_->begun_anew(), 1u);
  End({1, 7});
  EXPECT_THAT(Give(id), ElementsAre(7));
}

TEST_F(MissFlowTest, WhatIsOnlyToBeHeldIsLoadedBehindAllOthersUntilRowsAskForIt) {
  const DemandId held = Ask(0, {1, 2}, DemandOf::kHolding);
  flow_->Continue();
  const std::vector<ScriptedLoads::Load> begun = loads_.TakeBegun();
  EXPECT_EQ(begun.size(), 2u);
  for (const ScriptedLoads::Load& load : begun) EXPECT_EQ(load.urgency, Urgency::kPrefetch);
  EXPECT_FALSE(flow_->AnyRowWaits());
  const DemandId pass = Ask(0, {2});
  flow_->Continue();
  EXPECT_TRUE(flow_->AnyRowWaits());
  EXPECT_THAT(loads_.TakePromoted(), ElementsAre(ExpertId{0, 2}));
  End({0, 2});
  EXPECT_THAT(Give(pass), ElementsAre(2));
  EXPECT_THAT(Give(held), ElementsAre(2));
  EXPECT_TRUE(flow_->MustWait(held));
  End({0, 1});
  EXPECT_THAT(Give(held), ElementsAre(1));
}

TEST_F(MissFlowTest, WhatIsOnlyToBeHeldDoesNotHastenALoadAhead) {
  Open(4, {}, /*predicts=*/true);
  guesses_ = {{.expert = 7, .weight = 1, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  const DemandId held = Ask(1, {7}, DemandOf::kHolding);
  flow_->Continue();
  EXPECT_THAT(loads_.TakePromoted(), IsEmpty());
  const DemandId pass = Ask(1, {2});  // nor does it go, though no row wants it
  flow_->Continue();
  EXPECT_THAT(UnderWay(), UnorderedElementsAre(ExpertId{1, 7}, ExpertId{1, 2}));
  End({1, 7});
  EXPECT_THAT(Give(held), ElementsAre(7));
  flow_->Close(pass);
}

}  // namespace
}  // namespace troupe
