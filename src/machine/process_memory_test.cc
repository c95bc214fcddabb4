#include "machine/process_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "testing/sanitized.h"

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

}  // namespace
}  // namespace troupe
