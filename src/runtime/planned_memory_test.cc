#include "runtime/planned_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace troupe {
namespace {

class PlannedMemoryTest : public testing::Test {
 protected:
  // A plan of `size`, where the process holds `held`; what it was told is in taken_.
  PlannedMemory::Share Add(Bytes held, Bytes size) {
    return memory_
        .Add([held] { return held; },
             [&](Bytes taken) -> Result<Bytes> {
               taken_ = taken;
               return taken + size;
             })
        .value();
  }

  PlannedMemory memory_;
  Bytes taken_;
};

TEST_F(PlannedMemoryTest, WhatAPlanHasNotTouchedYetIsTakenForTheNext) {
  const auto first = Add(10_MiB, 100_MiB);
  EXPECT_EQ(taken_, 10_MiB);
  const auto second = Add(40_MiB, 50_MiB);  // 70 MiB of the first are still to come
  EXPECT_EQ(taken_, 110_MiB);
  Add(200_MiB, 1_MiB);  // the process has taken more by itself
  EXPECT_EQ(taken_, 200_MiB);
  EXPECT_EQ(second.size(), 50_MiB);
}

TEST_F(PlannedMemoryTest, AClosedPlanIsNotCounted) {
  std::optional<PlannedMemory::Share> first = Add(10_MiB, 100_MiB);
  PlannedMemory::Share moved = std::move(*first);
  first.reset();
  Add(20_MiB, 5_MiB);
  EXPECT_EQ(taken_, 110_MiB);
  moved = PlannedMemory::Share();
  Add(20_MiB, 5_MiB);
  EXPECT_EQ(taken_, 20_MiB);
}

TEST_F(PlannedMemoryTest, ALookAtWhatFollowsCountsNoPlanOfNow) {
  const auto look = [&](Bytes held) {
    return memory_.Look([held] { return held; },
                        [&](Bytes taken) -> Result<Bytes> {
                          taken_ = taken;
                          return taken + 500_MiB;
                        });
  };
  {
    const auto first = Add(10_MiB, 100_MiB);
    EXPECT_TRUE(look(90_MiB).ok());
    EXPECT_EQ(taken_, 10_MiB);
    Add(90_MiB, 1_MiB);
    EXPECT_EQ(taken_, 110_MiB);  // the look has taken nothing
  }
  EXPECT_TRUE(look(20_MiB).ok());
  EXPECT_EQ(taken_, 20_MiB);
  EXPECT_EQ(
      memory_.Look([] { return 1_MiB; }, [](Bytes) -> Result<Bytes> { return DataLoss("no"); })
          .code(),
      Code::kDataLoss);
}

TEST_F(PlannedMemoryTest, APlanThatFailsTakesNothing) {
  const auto refused =
      memory_.Add([] { return 1_MiB; }, [](Bytes) -> Result<Bytes> { return DataLoss("no"); });
  EXPECT_EQ(refused.status().code(), Code::kDataLoss);
  Add(2_MiB, 1_MiB);
  EXPECT_EQ(taken_, 2_MiB);
}

TEST_F(PlannedMemoryTest, PlansOfSeveralThreadsSeeOneAnother) {
  std::vector<PlannedMemory::Share> shares(8);
  std::vector<Bytes> taken(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        shares[i] = memory_
                        .Add([] { return Bytes(); },
                             [&](Bytes before) -> Result<Bytes> {
                               taken[i] = before;
                               return before + 1_MiB;
                             })
                        .value();
      });
    }
  }
  std::ranges::sort(taken);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(taken[i], i * 1_MiB);
}

}  // namespace
}  // namespace troupe
