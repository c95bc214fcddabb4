#include "io/byte_source.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace troupe {
namespace {

constexpr std::array<std::byte, 4> kBytes = {std::byte{10}, std::byte{11}, std::byte{12},
                                             std::byte{13}};

TEST(SpanSource, ReadsAnyRangeItHas) {
  const SpanSource source("four", kBytes);
  std::array<std::byte, 2> out{};
  ASSERT_TRUE(source.ReadAt(1, out).ok());
  EXPECT_EQ(out[0], std::byte{11});
  EXPECT_EQ(out[1], std::byte{12});
  EXPECT_TRUE(source.ReadAt(4, {}).ok());
}

TEST(SpanSource, RefusesReadsPastItsEndAndSaysWhere) {
  const SpanSource source("four", kBytes);
  std::array<std::byte, 2> out{};
  const Status status = source.ReadAt(3, out);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_EQ(status.message(), "four: 2 bytes wanted at byte 3, but it ends at byte 4");
  EXPECT_FALSE(source.ReadAt(5, {}).ok());
}

TEST(SpanSource, DoesNotWrapAroundAtHugeOffsets) {
  const SpanSource source("four", kBytes);
  std::array<std::byte, 2> out{};
  EXPECT_FALSE(source.ReadAt(std::numeric_limits<std::uint64_t>::max(), out).ok());
}

}  // namespace
}  // namespace troupe
