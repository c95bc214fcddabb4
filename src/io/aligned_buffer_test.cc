#include "io/aligned_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

// Lets an allocation that is too large fail under AddressSanitizer as it does without it.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer chose the name
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace troupe {
namespace {

// Of this process's own memory.
Bytes ResidentOwn() {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    std::uint64_t kibibytes = 0;
    if (name == "RssAnon:" && status >> kibibytes) return Bytes(kibibytes << 10);
  }
  return Bytes();
}

TEST(AlignedBuffer, HasTheAlignmentAndTheSizeAskedFor) {
  for (const Bytes alignment : {kCacheLine, kPage, kHugePage}) {
    for (const Bytes size : {1_B, 63_B, 64_B, 4097_B, 3_MiB}) {
      AlignedBuffer buffer = AlignedBuffer::Allocate(size, {.alignment = alignment}).value();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment.count(), 0u);
      EXPECT_EQ(buffer.size(), size);
      EXPECT_EQ(buffer.capacity().count(), AlignUp(size.count(), alignment.count()));
      // Every byte of the capacity is ours: the sanitizer watches.
      for (std::uint64_t i = 0; i < buffer.capacity().count(); ++i) buffer.data()[i] = std::byte{1};
    }
  }
}

TEST(AlignedBuffer, HugePagesAreAHintThatNeverFails) {
  AlignedBuffer buffer =
      AlignedBuffer::Allocate(4_MiB, {.alignment = kHugePage, .huge_pages = true}).value();
  buffer.bytes().back() = std::byte{7};
  EXPECT_EQ(buffer.bytes().back(), std::byte{7});
  EXPECT_TRUE(AlignedBuffer::Allocate(100_B, {.huge_pages = true}).ok());
}

TEST(AlignedBuffer, GivesBackWholePagesAndKeepsWhatLiesBeforeThem) {
  for (const bool huge : {false, true}) {
    AlignedBuffer buffer =
        AlignedBuffer::Allocate(16_MiB, {.alignment = kHugePage, .huge_pages = huge}).value();
    std::ranges::fill(buffer.bytes(), std::byte{7});
    const Bytes before = ResidentOwn();
    ASSERT_TRUE(buffer.GiveBackFrom(6_MiB + 1_B));
    EXPECT_GE(before - ResidentOwn(), huge ? 7_MiB : 9_MiB) << huge;
    const std::span<const std::byte> kept = buffer.bytes().first((6_MiB + 1_B).count());
    EXPECT_TRUE(std::ranges::all_of(kept, [](std::byte b) { return b == std::byte{7}; }));
    EXPECT_EQ(buffer.bytes().back(), std::byte{0});
    buffer.bytes().back() = std::byte{8};  // it has memory again
    EXPECT_EQ(buffer.bytes().back(), std::byte{8});
    EXPECT_TRUE(buffer.GiveBackFrom(16_MiB));  // nothing
  }
}

TEST(AlignedBuffer, OfNoBytesIsStillABuffer) {
  const AlignedBuffer buffer = AlignedBuffer::Allocate(0_B).value();
  EXPECT_NE(buffer.data(), nullptr);
  EXPECT_TRUE(buffer.bytes().empty());
}

TEST(AlignedBuffer, TooMuchMemoryIsAnErrorThatSaysHowMuch) {
  for (const std::uint64_t size :
       {std::uint64_t{1} << 62, std::numeric_limits<std::uint64_t>::max()}) {
    const auto buffer = AlignedBuffer::Allocate(Bytes(size), {.alignment = kHugePage});
    EXPECT_EQ(buffer.status().code(), Code::kResourceExhausted);
    EXPECT_THAT(buffer.status().message(), ::testing::HasSubstr(ToString(Bytes(size))));
  }
}

TEST(AlignedBuffer, MovingLeavesNothingBehind) {
  AlignedBuffer a = AlignedBuffer::Allocate(8_B).value();
  std::byte* const memory = a.data();
  AlignedBuffer b = std::move(a);
  EXPECT_EQ(b.data(), memory);
  EXPECT_EQ(a.data(), nullptr);    // NOLINT: what a moved-from buffer is, is the question
  EXPECT_TRUE(a.bytes().empty());  // NOLINT
  a = std::move(b);
  EXPECT_EQ(a.data(), memory);
  EXPECT_EQ(a.size(), 8_B);
}

TEST(AlignedBuffer, ShowsItsBytesAsElements) {
  AlignedBuffer buffer = AlignedBuffer::Allocate(Bytes(3 * sizeof(float))).value();
  buffer.As<float>()[2] = 1.5f;
  EXPECT_EQ(std::as_const(buffer).As<float>().size(), 3u);
  EXPECT_EQ(std::as_const(buffer).As<float>()[2], 1.5f);
  EXPECT_DEATH((void)buffer.As<double>(), "sizeof");
}

}  // namespace
}  // namespace troupe
