// Algorithms 1 and 2 on cases worked by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/layer_counts.h"
#include "placement/placer.h"
#include "placement/problems_for_test.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

TEST(LayerCountsTest, EntropyIsInBits) {
  EXPECT_DOUBLE_EQ(ActivationEntropy(std::vector<double>{3, 3, 3, 3}), 2);
  EXPECT_DOUBLE_EQ(ActivationEntropy(std::vector<double>{2, 1, 1, 0}), 1.5);
  EXPECT_EQ(ActivationEntropy(std::vector<double>{0, 7, 0}), 0);
  EXPECT_EQ(ActivationEntropy(std::vector<double>{0, 0}), 0);
}

TEST(LayerCountsTest, GoByTheServersOwnEntropy) {
  // Entropies 2 and 1 bits, then 1 and 2: six slots are 4 and 2, then 2 and 4.
  const PlacementProblem problem =
      SmallProblem({6, 6}, {{{1, 1, 1, 1}, {1, 1, 0, 0}}, {{0, 0, 1, 1}, {1, 1, 1, 1}}});
  EXPECT_THAT(CountExpertsPerLayer(problem), ElementsAre(ElementsAre(4, 2), ElementsAre(2, 4)));
}

TEST(LayerCountsTest, SlotsThatRoundingLeavesGoToTheLayerThatLostMost) {
  // Both layers 1.5 bits; five slots are 2.5 each, rounded down 2: one is left over.
  const PlacementProblem problem =
      SmallProblem({5, 8}, {{{2, 1, 1, 0}, {2, 1, 1, 0}}, {{1, 1, 1, 1}, {1, 1, 1, 1}}});
  EXPECT_THAT(CountExpertsPerLayer(problem), ElementsAre(ElementsAre(3, 2), ElementsAre(4, 4)));
}

TEST(LayerCountsTest, ALayerThatLacksCoverageBorrowsFromTheRichest) {
  // Servers of 4 and 4 slots see no variety in layer 1: 4 + 4 and 0 + 0. Layer 1 needs 4. Layer 0
  // gives while it has more than 4: one from each server, twice.
  const PlacementProblem problem =
      SmallProblem({4, 4}, {{{1, 1, 1, 1}, {1, 0, 0, 0}}, {{1, 1, 1, 1}, {1, 0, 0, 0}}});
  EXPECT_THAT(CountExpertsPerLayer(problem), ElementsAre(ElementsAre(2, 2), ElementsAre(2, 2)));
}

TEST(LayerCountsTest, SpareSlotsCoverBeforeAnythingIsBorrowed) {
  const PlacementProblem problem =
      SmallProblem({2, 4}, {{{1, 1, 1}, {1, 0, 0}}, {{1, 1, 1}, {1, 0, 0}}});
  // Server 1: 4 slots, 3 of layer 0 at most, the fourth is spare and goes to layer 1 before
  // anything is borrowed; then layer 1 lacks two: server 1 lends, then server 0.
  EXPECT_THAT(CountExpertsPerLayer(problem), ElementsAre(ElementsAre(1, 1), ElementsAre(2, 2)));
}

TEST(LayerCountsTest, OfServersThatCouldLendTheOneWithTheMostMemoryDoes) {
  // Layer 0 has 3 + 3 of 3, layer 1 none of one, and no slot is spare.
  PlacementProblem problem = SmallProblem({6, 7}, {{{1, 1, 1, 1}}, {{1, 1, 1, 1}}});
  problem.experts = ExpertTable({{2_B, 2_B, 2_B}, {2_B}});  // 7 bytes: more, but no fourth slot
  EXPECT_THAT(CountExpertsPerLayer(problem), ElementsAre(ElementsAre(3, 0), ElementsAre(2, 1)));
}

TEST(LayerCountsTest, OfLayersThatCouldLendTheRichestDoes) {
  // Entropies 1, 2 and 0 bits: six slots are 2, 4 and 0. Of layers 0 and 1 there are twice as many
  // as they need, 4 and 8; of layer 2 none.
  const std::vector<std::vector<double>> users = {{1, 1, 1, 1, 1, 1, 1, 0}};
  PlacementProblem problem = SmallProblem({6, 6}, {users, users});
  problem.experts = ExpertTable({{1_B, 1_B}, {1_B, 1_B, 1_B, 1_B}, {1_B, 1_B}});
  EXPECT_THAT(CountExpertsPerLayer(problem),
              ElementsAre(ElementsAre(2, 3, 1), ElementsAre(2, 3, 1)));
}

TEST(LayerCountsTest, NeverMoreOfALayerThanItHas) {
  const PlacementProblem problem = SmallProblem({10}, {{{1, 1, 1}, {1, 0, 0}}});
  EXPECT_THAT(CountExpertsPerLayer(problem), ElementsAre(ElementsAre(3, 3)));
}

TEST(LayerCountsTest, WithoutActivationsAllLayersCountAlike) {
  const PlacementProblem problem = SmallProblem({6}, {{{0, 0, 0}, {0, 0, 0}}});
  EXPECT_THAT(CountExpertsPerLayer(problem), ElementsAre(ElementsAre(3, 3)));
}

TEST(DanceMoeTest, EachServerTakesWhatItsUsersActivateMost) {
  const PlacementProblem problem = SmallProblem({2, 2}, {{{9, 8, 1, 0}}, {{0, 1, 8, 9}}});
  const Placement placement = MakeDanceMoe()->Place(problem).value();
  EXPECT_THAT(placement.experts,
              ElementsAre(ElementsAre(ElementsAre(0, 1)), ElementsAre(ElementsAre(2, 3))));
}

TEST(DanceMoeTest, TheUnassignedReplaceTheLeastUsedDuplicates) {
  // All take 0 and 1. Unassigned: 2 and 3. Every server has two duplicates, so server 0 comes
  // first: it prefers 3 to 2 and gives up 1 (7 < 9). Then server 1 takes 2 for 1 (6 < 8), as server
  // 2 still has a 1.
  const PlacementProblem problem =
      SmallProblem({2, 2, 2}, {{{9, 7, 1, 2}}, {{8, 6, 4, 3}}, {{9, 9, 0, 0}}});
  const Placement placement = MakeDanceMoe()->Place(problem).value();
  EXPECT_THAT(placement.experts,
              ElementsAre(ElementsAre(ElementsAre(0, 3)), ElementsAre(ElementsAre(0, 2)),
                          ElementsAre(ElementsAre(0, 1))));
}

TEST(DanceMoeTest, TheServerWithTheFewestDuplicatesGivesWayFirst) {
  // Server 0 holds 0 and 3 (one duplicate: 0), server 1 holds 0, 1, server 2 holds 0, 1 (two each).
  // Unassigned: 2. Server 0 has the fewest, although its users want 0 most of all.
  const PlacementProblem problem =
      SmallProblem({2, 2, 2}, {{{9, 0, 0, 8}}, {{3, 2, 1, 0}}, {{3, 2, 1, 0}}});
  const Placement placement = MakeDanceMoe()->Place(problem).value();
  EXPECT_THAT(placement.experts[0], ElementsAre(ElementsAre(2, 3)));
}

TEST(DanceMoeTest, AServerWithoutDuplicatesKeepsWhatItHas) {
  // Server 0 holds 3, which no other server does: zero duplicates, first in the order, passed over.
  const PlacementProblem problem = SmallProblem({1, 2, 2}, {{{0, 0, 0, 9}},  //
                                                            {{5, 4, 1, 0}},  //
                                                            {{5, 4, 2, 0}}});
  const Placement placement = MakeDanceMoe()->Place(problem).value();
  EXPECT_THAT(placement.experts,
              ElementsAre(ElementsAre(ElementsAre(3)), ElementsAre(ElementsAre(0, 2)),
                          ElementsAre(ElementsAre(0, 1))));
}

}  // namespace
}  // namespace troupe
