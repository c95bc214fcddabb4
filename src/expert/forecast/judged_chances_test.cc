#include "expert/forecast/judged_chances.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

ChanceHistogram Counted(const std::vector<std::pair<double, bool>>& chances) {
  ChanceHistogram histogram;
  for (const auto& [chance, asked] : chances) {
    histogram.Count(ChanceHistogram::BinOf(chance), asked);
  }
  return histogram;
}

TEST(ChanceHistogram, EveryChanceHasABin) {
  EXPECT_EQ(ChanceHistogram::BinOf(0), 0u);
  EXPECT_EQ(ChanceHistogram::BinOf(-0.1), 0u);
  EXPECT_EQ(ChanceHistogram::BinOf(0.005), 0u);
  EXPECT_EQ(ChanceHistogram::BinOf(0.505), 50u);
  EXPECT_EQ(ChanceHistogram::BinOf(0.999), 99u);
  EXPECT_EQ(ChanceHistogram::BinOf(1), 99u);
  EXPECT_EQ(ChanceHistogram::BinOf(2), 99u);
}

TEST(ChanceHistogram, RecallIsThatOfTheLowestThresholdThatIsPreciseEnough) {
  // From the top: 1 of 1, 1 of 2, 2 of 3, 3 of 4, 3 of 5; and one miss that nobody thought of.
  const ChanceHistogram histogram = Counted(
      {{0.95, true}, {0.85, false}, {0.75, true}, {0.65, true}, {0.55, false}, {0.001, true}});
  EXPECT_EQ(histogram.misses(), 4u);
  EXPECT_EQ(histogram.RecallAt(0.8), 0.25);
  // At 0.85 too few came true: a lower threshold is precise enough again.
  EXPECT_EQ(histogram.RecallAt(0.7), 0.75);
  EXPECT_EQ(histogram.RecallAt(0.75), 0.75);
  EXPECT_EQ(histogram.RecallAt(0.6), 1);  // 4 of 6
  EXPECT_EQ(histogram.RecallAt(0), 1);
}

TEST(ChanceHistogram, NothingIsFoundWhereNoThresholdIsPreciseOrNothingWasMissed) {
  EXPECT_EQ(Counted({{0.9, false}, {0.8, true}}).RecallAt(0.6), 0);
  EXPECT_EQ(Counted({{0.9, false}}).RecallAt(0.5), 0);
  EXPECT_EQ(ChanceHistogram().RecallAt(0.5), 0);
}

// Every threshold tried on every chance.
double SlowRecall(const std::vector<std::pair<double, bool>>& chances, double precision) {
  std::size_t best = 0, misses = 0;
  for (const auto& [chance, asked] : chances) misses += asked ? 1 : 0;
  for (std::size_t threshold = 0; threshold < ChanceHistogram::kBins; ++threshold) {
    std::size_t said = 0, came = 0;
    for (const auto& [chance, asked] : chances) {
      if (ChanceHistogram::BinOf(chance) < threshold) continue;
      ++said;
      came += asked ? 1 : 0;
    }
    const bool precise = static_cast<double>(came) >= precision * static_cast<double>(said);
    if (precise && came > best) best = came;
  }
  return misses == 0 ? 0 : static_cast<double>(best) / static_cast<double>(misses);
}

TEST(ChanceHistogram, AgreesWithTryingEveryThreshold) {
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<double, bool>> chances(rng.Below(80));
    for (auto& [chance, asked] : chances) {
      chance = rng.Uniform();
      asked = rng.Uniform() < chance * chance;
    }
    for (const double precision : {0.3, 0.5, 0.6, 0.7, 1.0}) {
      EXPECT_EQ(Counted(chances).RecallAt(precision), SlowRecall(chances, precision)) << round;
    }
  }
}

TEST(JudgedChances, AnyIsToldOfBothKinds) {
  JudgedChances judged;
  EXPECT_FALSE(judged.any());
  judged.next_token[4].Count(0, false);
  EXPECT_TRUE(judged.any());
  judged = {};
  judged.same_token[0].Count(99, true);
  EXPECT_TRUE(judged.any());
}

}  // namespace
}  // namespace troupe
