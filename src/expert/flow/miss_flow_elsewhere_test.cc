// Experts of a MissFlow that peers compute, and those that come back to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "expert/flow/miss_flow_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(MissFlowTest, WhatIsAnsweredElsewhereIsNeverLoadedNorGiven) {
  // A second a load: of three the place takes one, in two seconds.
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 2}};
  loads_.set_costs({.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places});
  const std::vector<ExpertDemand> demands = {
      {.expert = 0, .tokens = 2}, {.expert = 1, .tokens = 1}, {.expert = 2, .tokens = 3}};
  const DemandId id = flow_->Ask(0, demands, now_);
  EXPECT_THAT(flow_->Elsewhere(id),
              ElementsAre(AnsweredElsewhere{.expert = 1, .place = 0, .load_seconds = 1}));
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 2}, ExpertId{0, 0}));
  End({0, 0});
  End({0, 2});
  EXPECT_THAT(Give(id), UnorderedElementsAre(0, 2));
  EXPECT_TRUE(flow_->IsDone(id));
  EXPECT_EQ(flow_->usage().misses, 3u);
  EXPECT_EQ(flow_->usage().elsewhere, 1u);
  EXPECT_EQ(flow_->usage().loaded, 2u);
}

TEST_F(MissFlowTest, WhatIsNotAnsweredElsewhereIsLoadedAfterAllAndGiven) {
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 0.1}};
  loads_.set_costs({.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places});
  const DemandId id = Ask(0, {0, 1});
  ASSERT_EQ(flow_->Elsewhere(id).size(), 2u);
  EXPECT_TRUE(flow_->IsDone(id));
  flow_->TakeBack(id, 0);
  EXPECT_FALSE(flow_->IsDone(id));
  EXPECT_THAT(flow_->Elsewhere(id),
              ElementsAre(AnsweredElsewhere{.expert = 1, .place = 0, .load_seconds = 1}));
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 0}));
  End({0, 0});
  EXPECT_THAT(Give(id), ElementsAre(0));
  EXPECT_TRUE(flow_->IsDone(id));
  EXPECT_EQ(flow_->usage().elsewhere, 1u);
  EXPECT_EQ(flow_->usage().loaded, 1u);
}

TEST_F(MissFlowTest, WhatIsTakenBackMayHaveComeMeanwhile) {
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 0.1}};
  loads_.set_costs({.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places});
  const DemandId id = Ask(0, {0});
  const DemandId other = Ask(0, {0}, DemandOf::kPeer);
  flow_->Continue();
  End({0, 0});
  flow_->TakeBack(id, 0);
  EXPECT_FALSE(flow_->MustWait(id));
  EXPECT_THAT(Give(id), ElementsAre(0));
  EXPECT_THAT(Give(other), ElementsAre(0));
}

TEST_F(MissFlowTest, APlaceIsAskedOnlyForWhatItHolds) {
  const std::vector<Place> places = {{.name = "a", .expert_seconds = 0.1},
                                     {.name = "b", .expert_seconds = 0.2}};
  const std::uint32_t both[] = {0, 1}, second[] = {1};
  const std::vector<std::span<const std::uint32_t>> holders = {second, {}, both, {}};
  loads_.set_costs(
      {.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places, .holders = holders});
  const DemandId id = Ask(0, {0, 1, 2});
  EXPECT_THAT(flow_->Elsewhere(id),
              UnorderedElementsAre(AnsweredElsewhere{.expert = 0, .place = 1, .load_seconds = 1},
                                   AnsweredElsewhere{.expert = 2, .place = 0, .load_seconds = 1}));
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 1}));
}

TEST_F(MissFlowTest, APeersDemandIsAnsweredHere) {
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 0.1}};
  const std::uint32_t first[] = {0};
  const std::vector<std::span<const std::uint32_t>> holders(4, first);
  loads_.set_costs(
      {.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places, .holders = holders});
  const DemandId id = Ask(0, {0, 1}, DemandOf::kPeer);
  EXPECT_THAT(flow_->Elsewhere(id), IsEmpty());
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 0}, ExpertId{0, 1}));
}

}  // namespace
}  // namespace troupe
