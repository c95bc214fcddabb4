#include "expert/flow/slot_limit.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr Nanos kLimitSecond = 1'000'000'000;
constexpr std::uint32_t kMostSlots = 64, kLeastOfPasses = 8;

// 64 slots of 10 MiB, and 360 MiB beside; 200 MiB were left to others.
SlotLimit::Options LimitOptions(bool named = false) {
  return {.most = kMostSlots,
          .least = kLeastOfPasses,
          .slot = 10_MiB,
          .planned = 1000_MiB,
          .marks = named ? MemoryMarks::OfNamed(200_MiB) : MemoryMarks::OfChosen(200_MiB),
          .named = named};
}

// A machine with 1200 MiB for this process and its neighbours. The process has taken `taken` of
// what is not slots, and all slots that it may use have memory.
struct LimitedMachine {
  SlotLimit limit;
  std::uint64_t taken = 360, neighbours = 0;  // MiB
  Nanos now = 0;

  SlotLimit::Reading Read() const {
    const std::uint64_t held = taken + 10 * limit.slots();
    const std::uint64_t used = held + neighbours;
    return {.free = Bytes((1200 - std::min<std::uint64_t>(used, 1200)) << 20),
            .held = Bytes(held << 20),
            .with_memory = limit.slots()};
  }
  std::uint32_t Look(Nanos after = kLimitSecond) {
    now += after;
    return limit.Look(Read(), now);
  }
  std::uint32_t LookFor(int seconds) {
    for (int i = 0; i < seconds; ++i) Look();
    return limit.slots();
  }
};

TEST(SlotLimitTest, AllSlotsArePlannedAndStayWhileNobodyElseComes) {
  LimitedMachine machine{SlotLimit(LimitOptions())};
  EXPECT_EQ(machine.LookFor(100), kMostSlots);
  EXPECT_EQ(machine.limit.Spare(machine.Read()), 200 << 20);
}

TEST(SlotLimitTest, GivesBackAtOnceWhatIsMissingAndNoMore) {
  LimitedMachine machine{SlotLimit(LimitOptions())};
  machine.neighbours = 100;
  EXPECT_EQ(machine.Look(), kMostSlots);  // half of what was left to others is still there
  machine.neighbours = 150;
  EXPECT_EQ(machine.Look(), kMostSlots - 10);  // 50 MiB of 150 that are enough
  EXPECT_EQ(machine.LookFor(100), kMostSlots - 10);
  EXPECT_EQ(machine.limit.Spare(machine.Read()), 150 << 20);
}

TEST(SlotLimitTest, CountsWhatTheProcessHasNotTakenYet) {
  LimitedMachine machine{SlotLimit(LimitOptions()), 60};
  machine.neighbours = 150;  // there are 350 MiB free, of which 300 are promised
  EXPECT_EQ(machine.Look(), kMostSlots - 10);
}

TEST(SlotLimitTest, WaitsForACacheThatHasYetToGiveBack) {
  LimitedMachine machine{SlotLimit(LimitOptions())};
  machine.neighbours = 150;
  const SlotLimit::Reading before = machine.Read();
  for (int i = 1; i < 10; ++i) {
    EXPECT_EQ(machine.limit.Look(before, i * kLimitSecond), kMostSlots - 10);
  }
}

TEST(SlotLimitTest, KeepsWhatPassesNeed) {
  LimitedMachine machine{SlotLimit(LimitOptions())};
  machine.neighbours = 1200;
  EXPECT_EQ(machine.LookFor(10), kLeastOfPasses);
  SlotLimit::Options few = LimitOptions();
  few.most = 4;  // fewer than passes would like
  SlotLimit limit(few);
  EXPECT_EQ(limit.Look({.free = 0_B, .held = 1000_MiB, .with_memory = 4}, 1), 4u);
}

TEST(SlotLimitTest, TakesAgainWhatHasBeenThereForAWhileAndNeverMoreThanPlanned) {
  LimitedMachine machine{SlotLimit(LimitOptions())};
  machine.neighbours = 190;
  EXPECT_EQ(machine.Look(), kMostSlots - 14);
  machine.neighbours = 0;
  EXPECT_EQ(machine.LookFor(15), kMostSlots - 14);
  EXPECT_EQ(machine.LookFor(1), kMostSlots);
  EXPECT_EQ(machine.LookFor(1000), kMostSlots);
}

TEST(SlotLimitTest, TakesWhatWasThereAllTheTime) {
  LimitedMachine machine{SlotLimit(LimitOptions())};
  machine.neighbours = 190;
  machine.Look();
  machine.neighbours = 100;
  machine.LookFor(5);
  machine.neighbours = 130;
  machine.LookFor(5);
  machine.neighbours = 50;
  machine.LookFor(6);
  EXPECT_EQ(machine.limit.slots(), kMostSlots - 14 + 6);  // of the dearest moment
}

TEST(SlotLimitTest, AMomentWithMemoryIsNotTaken) {
  LimitedMachine machine{SlotLimit(LimitOptions())};
  machine.neighbours = 190;
  machine.Look();
  for (int i = 0; i < 50; ++i) {
    machine.neighbours = i % 10 == 9 ? 190 : 0;
    EXPECT_EQ(machine.Look(), kMostSlots - 14);
  }
}

// Between the marks there are 50 MiB: a reading that swings by less never moves the limit twice.
TEST(SlotLimitTest, ANoisyReadingMovesItOnceAtMost) {
  Rng rng(TestSeed());
  for (std::uint64_t level = 0; level <= 190; level += 5) {
    LimitedMachine machine{SlotLimit(LimitOptions())};
    std::uint32_t slots = kMostSlots;
    int changes = 0;
    for (int i = 0; i < 2000; ++i) {
      machine.neighbours = level + rng.Below(40);
      const std::uint32_t next = machine.Look();
      changes += next != slots ? 1 : 0;
      slots = next;
    }
    EXPECT_LE(changes, 1) << level;
  }
}

TEST(SlotLimitTest, ANeighbourWhoComesAndGoesMakesItWaitLongerEachTime) {
  LimitedMachine machine{SlotLimit(LimitOptions())};
  int changes = 0;
  std::uint32_t slots = kMostSlots;
  for (int second = 0; second < 3600; ++second) {
    machine.neighbours = second / 20 % 2 == 0 ? 190 : 0;  // gone for 20 s, back for 20 s
    const std::uint32_t next = machine.Look();
    changes += next != slots ? 1 : 0;
    slots = next;
  }
  EXPECT_LE(changes, 3);
  EXPECT_EQ(machine.limit.waits(), 30 * kLimitSecond);
  machine.neighbours = 0;
  EXPECT_EQ(machine.LookFor(31), kMostSlots);
  machine.LookFor(1000);
  machine.neighbours = 190;
  machine.Look();
  EXPECT_EQ(machine.limit.waits(), 15 * kLimitSecond);  // it has lasted, so the usual time again
}

TEST(SlotLimitTest, ANamedBudgetStaysUntilMemoryRunsOut) {
  LimitedMachine machine{SlotLimit(LimitOptions(/*named=*/true))};
  machine.neighbours = 160;
  EXPECT_EQ(machine.LookFor(100), kMostSlots);  // 40 MiB are left to all others
  machine.neighbours = 180;
  EXPECT_EQ(machine.Look(), kMostSlots - 5);  // 20 MiB, and 64 are enough
  EXPECT_EQ(machine.LookFor(100), kMostSlots - 5);
  machine.neighbours = 100;
  EXPECT_EQ(machine.LookFor(20), kMostSlots);
}

TEST(SlotLimitTest, ANamedBudgetThatWasNotUsedIsNotMissedAndSlotsWithoutMemoryDoNotHelp) {
  SlotLimit limit(LimitOptions(/*named=*/true));
  EXPECT_EQ(limit.Look({.free = 60_MiB, .held = 400_MiB, .with_memory = 4}, 1), kMostSlots);
  EXPECT_EQ(limit.Look({.free = 20_MiB, .held = 600_MiB, .with_memory = 24}, 2), 19u);
}

TEST(SlotLimitTest, WhereLittleIsLeftToOthersANamedBudgetGivesBackEarlier) {
  EXPECT_EQ(MemoryMarks::OfNamed(1_GiB), (MemoryMarks{.low = 128_MiB, .enough = 256_MiB}));
  EXPECT_EQ(MemoryMarks::OfNamed(80_MiB), (MemoryMarks{.low = 32_MiB, .enough = 60_MiB}));
  EXPECT_EQ(MemoryMarks::OfNamed(20_MiB), (MemoryMarks{.low = 10_MiB, .enough = 15_MiB}));
}

TEST(SlotLimitTest, LooksSoonerWhileMemoryFallsFast) {
  constexpr Nanos kEvery = kLimitSecond / 2;
  const auto next = [](std::int64_t fell, std::int64_t above_mark) {
    return LookAgainIn(fell << 20, kEvery, above_mark << 20, kEvery);
  };
  EXPECT_EQ(next(0, 100), kEvery);
  EXPECT_EQ(next(-50, 100), kEvery);
  EXPECT_EQ(next(10, 100), kEvery);
  EXPECT_EQ(next(100, 100), kEvery / 2);
  EXPECT_EQ(next(100, 50), kEvery / 4);
  EXPECT_EQ(next(1000, 1), kEvery / 20);
  EXPECT_EQ(next(100, -1), kEvery);  // short already: what was given back takes its time
}

TEST(SlotLimitTest, StaysWithinItsBoundsWhateverItReads) {
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    const bool named = rng.Below(2) == 0;
    const std::int64_t enough = (named ? 64 : 150) << 20;
    SlotLimit limit(LimitOptions(named));
    Nanos now = 0;
    for (int i = 0; i < 300; ++i) {
      now += static_cast<Nanos>(rng.Below(20)) * kLimitSecond;
      const std::uint32_t before = limit.slots();
      const SlotLimit::Reading reading = {
          .free = Bytes(rng.Below(2000) << 20),
          .held = Bytes(rng.Below(1200) << 20),
          .with_memory = static_cast<std::uint32_t>(rng.Below(kMostSlots + 1))};
      const std::int64_t spare = limit.Spare(reading);
      const std::uint32_t slots = limit.Look(reading, now);
      EXPECT_GE(slots, kLeastOfPasses);
      EXPECT_LE(slots, kMostSlots);
      // More is taken only where it fits, and less where it does not.
      if (slots > before) {
        EXPECT_GE(spare - (std::int64_t{slots - before} * 10 << 20), enough);
      }
      if (slots < before) {
        EXPECT_LT(spare, 100 << 20);
      }
    }
  }
}

}  // namespace
}  // namespace troupe
