#include "base/bytes.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Bytes, ReadsSizesAsPeopleWriteThem) {
  EXPECT_EQ(ParseBytes("512MiB").value(), 512_MiB);
  EXPECT_EQ(ParseBytes("6GiB").value(), 6_GiB);
  EXPECT_EQ(ParseBytes("6G").value(), 6_GiB);
  EXPECT_EQ(ParseBytes("6g").value(), 6_GiB);
  EXPECT_EQ(ParseBytes("6 GiB").value(), 6_GiB);
  EXPECT_EQ(ParseBytes("1.5GiB").value(), 1536_MiB);
  EXPECT_EQ(ParseBytes("2GB").value(), Bytes(2'000'000'000));
  EXPECT_EQ(ParseBytes("4096").value(), 4_KiB);
  EXPECT_EQ(ParseBytes("0").value(), 0_B);
}

TEST(Bytes, RefusesWhatIsNoSizeAndQuotesIt) {
  for (const char* text : {"", "GiB", "-1GiB", "6Q", "6GiBs", "1e30GiB", "nan", "inf", "six"}) {
    const auto parsed = ParseBytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find(fmt::format("'{}'", text)), std::string::npos);
  }
}

TEST(Bytes, PrintsInTheUnitBelow1024) {
  EXPECT_EQ(ToString(0_B), "0 B");
  EXPECT_EQ(ToString(1023_B), "1023 B");
  EXPECT_EQ(ToString(1_KiB), "1.0 KiB");
  EXPECT_EQ(ToString(1536_MiB), "1.5 GiB");
}

TEST(Bytes, WhatItPrintsItReadsBackWithinRounding) {
  for (const Bytes b : {1_KiB, 3_MiB, 976_MiB, 8_GiB}) {
    EXPECT_EQ(ParseBytes(ToString(b)).value(), b) << ToString(b);
  }
}

TEST(Bytes, AlignsUpToPowersOfTwo) {
  EXPECT_EQ(AlignUp(0, 32), 0u);
  EXPECT_EQ(AlignUp(1, 32), 32u);
  EXPECT_EQ(AlignUp(32, 32), 32u);
  EXPECT_EQ(AlignUp(33, 4096), 4096u);
}

TEST(BytesDeathTest, SubtractionBelowZeroIsABug) {
  Bytes b = 1_KiB;
  EXPECT_DEATH(b -= 2_KiB, "broken invariant");
}

}  // namespace
}  // namespace troupe
