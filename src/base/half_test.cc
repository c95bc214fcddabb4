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

TEST(E4M3, HasTheNumbersOfItsFormatHalved) {
  EXPECT_EQ(HalvedE4M3ToFloat(0), 0);
  EXPECT_EQ(HalvedE4M3ToFloat(1), 0x1p-10f);
  EXPECT_EQ(HalvedE4M3ToFloat(7), 0x7p-10f);
  EXPECT_EQ(HalvedE4M3ToFloat(8), 0x1p-7f);
  EXPECT_EQ(HalvedE4M3ToFloat(0x38), 0.5f);
  EXPECT_EQ(HalvedE4M3ToFloat(0x3c), 0.75f);
  EXPECT_EQ(HalvedE4M3ToFloat(0x7e), 224);
  EXPECT_EQ(HalvedE4M3ToFloat(0x7f), 0);
  EXPECT_EQ(HalvedE4M3ToFloat(0x80), 0);
  EXPECT_EQ(HalvedE4M3ToFloat(0xb8), 0.5f);
  EXPECT_EQ(HalvedE4M3ToFloat(0xff), 240);
  for (int bits = 1; bits < 0x7f; ++bits) {
    ASSERT_GT(HalvedE4M3ToFloat(static_cast<std::uint8_t>(bits)),
              HalvedE4M3ToFloat(static_cast<std::uint8_t>(bits - 1)));
  }
}

TEST(E4M3, RoundsToTheNearestAndTiesUp) {
  constexpr std::uint8_t kLastBelow248 = 0x77;
  for (std::uint8_t bits = 0; bits < kLastBelow248; ++bits) {
    const float low = 2 * HalvedE4M3ToFloat(bits);
    const float high = 2 * HalvedE4M3ToFloat(static_cast<std::uint8_t>(bits + 1));
    const float middle = (low + high) / 2;
    ASSERT_EQ(FloatToE4M3(low), bits);
    ASSERT_EQ(FloatToE4M3(middle), bits == 7 ? 7 : bits + 1) << middle;
    ASSERT_EQ(FloatToE4M3(0.999f * middle), bits) << middle;
  }
  EXPECT_EQ(FloatToE4M3(std::nextafter(248.0f, 0.0f)), kLastBelow248);
  EXPECT_EQ(FloatToE4M3(248), 0x7e);
  EXPECT_EQ(FloatToE4M3(1e30f), 0x7e);
  EXPECT_EQ(FloatToE4M3(1e-30f), 0);
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
