// Nodes whose own users have given up sharing, and take it up again: what leaves their memories,
// and comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cluster/node_core_for_test.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr Nanos kSharingSecond = SimulatedNodes::kSecond;

class GivenUp : public testing::Test {
 protected:
  // Each node's users activate some experts more than the others.
  void Use() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      std::vector<std::uint32_t> counts(SimulatedNodes::kGrid.Count(), 1);
      for (std::size_t e = i; e < counts.size(); e += 4) counts[e] = 100;
      nodes_.core(i)->OnActivity(counts, nodes_.now());
    }
  }
  void GiveUp(bool given_up) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_.core(i)->OnSharing(given_up);
    nodes_.Run(30 * kSharingSecond);
  }
  std::size_t Held() const {
    std::size_t held = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) held += CountOf(nodes_.held(i));
    return held;
  }
  std::size_t HeldByNobody() const {
    std::size_t none = 0;
    for (std::size_t e = 0; e < SimulatedNodes::kGrid.Count(); ++e) {
      std::size_t copies = 0;
      for (std::size_t i = 0; i < nodes_.size(); ++i) copies += nodes_.held(i)[e];
      none += copies == 0 ? 1 : 0;
    }
    return none;
  }

  SimulatedNodes nodes_{{.most_held = 12, .copies = 1}};
};

TEST_F(GivenUp, SlotsGoToTheCacheAndComeBackAndNoExpertLeavesAllMemories) {
  nodes_.Run(20 * kSharingSecond);
  Use();
  nodes_.Run(20 * kSharingSecond);
  ExpectWell(nodes_);
  const std::size_t before = Held();
  const std::size_t nowhere = HeldByNobody();  // there are none of the first layer
  ASSERT_GT(before, SimulatedNodes::kGrid.Count());
  GiveUp(true);
  ExpectWell(nodes_);
  EXPECT_LT(Held(), before);
  EXPECT_EQ(HeldByNobody(), nowhere);
  std::size_t resting = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) resting += nodes_.core(i)->follower().resting();
  EXPECT_EQ(Held() + resting, before);
  EXPECT_THAT(nodes_.said(), Contains(HasSubstr("sharing does not pay here")));
  GiveUp(false);
  ExpectWell(nodes_);
  EXPECT_EQ(Held(), before);
}

TEST_F(GivenUp, WhatRestsIsHeldAgainWhereTheOtherNodeDies) {
  nodes_.Run(20 * kSharingSecond);
  Use();
  nodes_.Run(20 * kSharingSecond);
  GiveUp(true);
  nodes_.Kill(0);
  nodes_.Run(5 * kSharingSecond);
  std::size_t planned_and_lost = 0;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const ClusterPlan::Node& node = *nodes_.core(i)->plan()->Find("n" + std::to_string(i));
    for (std::uint32_t layer = 0; layer < SimulatedNodes::kGrid.layers; ++layer) {
      for (const std::uint32_t expert : node.held[layer]) {
        const std::size_t at = SimulatedNodes::kGrid.Index({layer, expert});
        planned_and_lost += nodes_.held(1)[at] == 0 && nodes_.held(2)[at] == 0 ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(planned_and_lost, 0u);
}

}  // namespace
}  // namespace troupe
