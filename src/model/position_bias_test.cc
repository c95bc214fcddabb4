#include "model/position_bias.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;

// T5's own: 32 buckets, alike from 128 on.
TEST(DistanceBuckets, OfADecoderHaveTheirOwnUpToHalfOfThemAndGrowFromThere) {
  const DistanceBuckets buckets{.count = 32, .max_distance = 128, .both_ways = false};
  for (std::int64_t back = 0; back < 16; ++back) EXPECT_EQ(buckets.Of(-back), back);
  // 16 * 8^(k / 16), rounded up, is where bucket 16 + k begins.
  const std::int64_t begins[] = {16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
  for (std::uint32_t k = 0; k < 16; ++k) {
    EXPECT_EQ(buckets.Of(-begins[k]), 16 + k);
    EXPECT_EQ(buckets.Of(-begins[k] + 1), 15 + k);
  }
  EXPECT_EQ(buckets.Of(-100000), 31u);
  EXPECT_EQ(buckets.Of(7), 0u);
}

TEST(DistanceBuckets, OfAnEncoderHaveTwoHalvesOneForEachDirection) {
  const DistanceBuckets buckets{.count = 32, .max_distance = 128, .both_ways = true};
  EXPECT_EQ(buckets.Of(0), 0u);
  const std::int64_t begins[] = {8, 12, 16, 23, 32, 46, 64, 91};  // 8 * 16^(k / 8), rounded up
  for (std::uint32_t k = 0; k < 8; ++k) {
    for (const std::int64_t sign : {-1, 1}) {
      const std::uint32_t half = sign > 0 ? 16 : 0;
      EXPECT_EQ(buckets.Of(sign * begins[k]), half + 8 + k) << begins[k];
      EXPECT_EQ(buckets.Of(sign * (begins[k] - 1)), half + 7 + k) << begins[k];
    }
  }
  EXPECT_EQ(buckets.Of(100000), 31u);
}

TEST(DistanceBuckets, WhereAllFarOnesAreAlikeShareTheLast) {
  const DistanceBuckets buckets{.count = 8, .max_distance = 4, .both_ways = false};
  EXPECT_EQ(buckets.Of(-3), 3u);
  EXPECT_EQ(buckets.Of(-4), 7u);
  EXPECT_EQ(buckets.Of(-400), 7u);
}

TEST(PositionBias, HasARowAHeadByDistance) {
  const DistanceBuckets buckets{.count = 4, .max_distance = 4, .both_ways = false};
  const std::vector<float> table = {0, 100, 1, 101, 2, 102, 3, 103};  // two heads
  std::vector<float> out(2 * 5);
  FillPositionBias(buckets, table.data(), 2, -4, 5, out);
  EXPECT_THAT(out, ElementsAre(3, 3, 2, 1, 0, 103, 103, 102, 101, 100));
}

}  // namespace
}  // namespace troupe
