#include "expert/gate/group_agreement.h"

#include <gtest/gtest.h>

#include <cmath>

#include "expert/gate/planted_gate_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Two groups of two. The gate is 0 but for its bias, so it says the same of every token: 3/4 for
// the first group.
GroupGateLayer FirstGroupMostly() {
  return {.groups = {{0, 2}, {1, 3}}, .weights = {0, 0}, .bias = {std::log(3.0f), 0}};
}

GateSamples OneToken(const std::vector<float>& scores) {
  static const float kInput = 1;
  return {.width = 1, .experts = 4, .inputs = {&kInput, 1}, .scores = scores};
}

TEST(GroupAgreement, CountsTheRoutersExpertsThatAreFound) {
  // The router chooses 1 and 0. The gate looks into 0 and 2 first.
  const std::vector<float> scores = {0.3f, 0.5f, 0.15f, 0.05f};
  const GateAgreement found = MeasureAgreement(OneToken(scores), FirstGroupMostly(), 2);
  ASSERT_EQ(found.by_looked.size(), 2u);
  EXPECT_EQ(found.by_looked[0].joint, 0.5);
  EXPECT_EQ(found.by_looked[0].product, 0.5);
  EXPECT_EQ(found.by_looked[0].best_groups, 0.5);  // 1 and 3
  EXPECT_EQ(found.by_looked[1].joint, 1);
  // 0 has 3/4 of 2/3, 1 has 1/4 of 10/11, 2 has 3/4 of 1/3: by products 0 and 2 are the best.
  EXPECT_EQ(found.by_looked[1].product, 0.5);
  EXPECT_EQ(found.by_looked[1].best_groups, 1);
  EXPECT_NEAR(found.divergence, 0.45 * std::log(0.45 / 0.75) + 0.55 * std::log(0.55 / 0.25), 1e-6);
  EXPECT_NEAR(found.of_nothing, 0, 1e-9);  // of one token, whose shares are the mean
}

TEST(GroupAgreement, LookingIntoMoreGroupsNeverFindsFewerAndIntoAllFindsAll) {
  Rng rng(TestSeed());
  const PlantedGate planted(60, 5, {{0, 5}, {1, 6}, {2, 7}, {3, 4}}, rng);
  const GateAgreement found = MeasureAgreement(planted.samples, planted.gate, 3);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_GE(found.by_looked[i].joint, found.by_looked[i - 1].joint);
    EXPECT_GE(found.by_looked[i].best_groups, found.by_looked[i - 1].best_groups);
  }
  EXPECT_NEAR(found.by_looked[3].joint, 1, 1e-9);
  EXPECT_NEAR(found.by_looked[3].best_groups, 1, 1e-9);
  // The router's own shares are what this gate says: the product is the router.
  EXPECT_GT(found.by_looked[3].product, 0.98);
}

TEST(GroupScoresReference, AddUpToOneWhateverIsLookedInto) {
  Rng rng(TestSeed());
  const PlantedGate planted(20, 5, {{0, 5}, {1, 6}, {2, 7}, {3, 4}}, rng);
  for (std::size_t t = 0; t < 20; ++t) {
    const auto shares = GroupSharesReference(planted.gate, planted.samples.Input(t));
    for (std::uint32_t looked = 1; looked <= 4; ++looked) {
      for (const GroupFusion fusion : {GroupFusion::kJoint, GroupFusion::kProduct}) {
        const GroupScores found = GroupScoresReference(planted.gate.groups, {true, looked, fusion},
                                                       shares, planted.samples.Scores(t));
        EXPECT_NEAR(std::accumulate(found.scores.begin(), found.scores.end(), 0.0), 1, 1e-6);
        EXPECT_EQ(found.looked.size(), looked);
      }
    }
  }
}

}  // namespace
}  // namespace troupe
