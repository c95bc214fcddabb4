#include "machine/process_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/sanitized.h"

namespace troupe {
namespace {

constexpr std::size_t kBlock = 4000, kBlocks = 8000;  // together 30 MiB, each too small for a map

TEST(ProcessMemory, WhatIsFreeGoesBackToTheSystemAndWhatIsUsedStays) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what is free";
  std::vector<std::unique_ptr<char[]>> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlock));
    std::memset(blocks.back().get(), 1, kBlock);
  }
  const Bytes all = ResidentMemory();
  // The last holds the heap's end, so that what is free lies in the middle.
  for (std::size_t i = 0; i + 1 < kBlocks; ++i) blocks[i].reset();
  const Bytes returned = ReturnFreeMemory();
  EXPECT_GT(returned, Bytes(kBlock * kBlocks / 2));
  EXPECT_LE(ResidentMemory(), all - returned + 1_MiB);
  EXPECT_EQ(blocks.back()[kBlock - 1], 1);
}

TEST(ProcessMemory, ItsPartsAreTheWhole) {
  const ResidentParts parts = ResidentMemoryParts();
  EXPECT_GT(parts.own, Bytes());
  EXPECT_GT(parts.files, Bytes());
  const Bytes whole = ResidentMemory(), sum = parts.own + parts.files;
  EXPECT_LE(std::max(whole, sum) - std::min(whole, sum), 2_MiB);
}

TEST(ProcessMemory, APlanCountsTheSameWhereTheKernelHasMappedMorePages) {
  const Bytes held = HeldForPlan({.own = 3000_KiB, .files = 11'900_KiB}, Bytes());
  EXPECT_EQ(held, 3_MiB + 16_MiB);
  EXPECT_EQ(HeldForPlan({.own = 3020_KiB, .files = 15'900_KiB}, Bytes()), held);
}

TEST(ProcessMemory, APlanCountsNoLessThanWhatIsHeld) {
  for (const Bytes own : {Bytes(), 1_MiB, 5_MiB + 1_KiB}) {
    for (const Bytes files : {Bytes(), 16_MiB, 16_MiB + 4_KiB, 40_MiB}) {
      const Bytes held = HeldForPlan({.own = own, .files = files}, Bytes());
      EXPECT_GE(held, own + files);
      EXPECT_LT(held, own + std::max(files, 16_MiB) + 5_MiB);
      const Bytes mapped = HeldForPlan({.own = own, .files = files}, 20_MiB);
      EXPECT_GE(mapped, own + std::max(files, 20_MiB));
      EXPECT_LT(mapped, own + std::max(files, 20_MiB) + 5_MiB);
    }
  }
}

}  // namespace
}  // namespace troupe
