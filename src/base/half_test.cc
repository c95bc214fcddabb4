#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe {
namespace {

TEST(Half, EveryHalfSurvivesTheRoundTrip) {
  for (std::uint32_t h = 0; h <= 0xffff; ++h) {
    const float f = HalfToFloat(static_cast<std::uint16_t>(h));
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(f))));
    } else {
      ASSERT_EQ(FloatToHalf(f), h) << f;
    }
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t h = 0; h < 0x7bff; ++h) {  // every positive finite half but the last
    const float low = HalfToFloat(static_cast<std::uint16_t>(h));
    const float high = HalfToFloat(static_cast<std::uint16_t>(h + 1));
    const float middle = (low + high) / 2;  // exact: one more bit than a half has
    ASSERT_EQ(FloatToHalf(middle), h % 2 == 0 ? h : h + 1) << middle;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, low)), h);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, high)), h + 1);
  }
}

TEST(Half, OverflowsToInfinityAtHalfAStepPastTheLargest) {
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65519.99f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::infinity()), 0x7c00);
}

TEST(Bf16, KeepsTheUpperBitsRoundedToEven) {
  for (std::uint32_t b = 0; b <= 0xffff; ++b) {
    const float f = Bf16ToFloat(static_cast<std::uint16_t>(b));
    if (std::isnan(f)) continue;
    ASSERT_EQ(FloatToBf16(f), b);
  }
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even stays
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, odd goes up
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(std::nanf("")))));
}

}  // namespace
}  // namespace troupe
