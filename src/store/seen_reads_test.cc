#include "store/seen_reads.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr Nanos kMs = 1'000'000;
constexpr SeenReads kOne = {.reads = 1, .bytes = 1000};

TEST(ReadWatch, AReadThatIsWaitedForTakesFromItsBeginningToItsEnd) {
  ReadWatch watch;
  watch.OnBegun(5 * kMs, 5 * kMs);
  watch.OnLooked(5 * kMs, 8 * kMs, kOne, false);
  EXPECT_EQ(watch.sum(), (SeenReads{.reads = 1, .bytes = 1000, .seconds = 3e-3}));
}

TEST(ReadWatch, WhatLayReadyWhileNobodyLookedCountsForNothing) {
  ReadWatch watch;
  watch.OnBegun(0, 0);
  watch.OnLooked(60'000 * kMs, 60'000 * kMs, kOne, false);
  EXPECT_EQ(watch.sum(), SeenReads());
}

TEST(ReadWatch, AfterAnUnseenEndTheNextSeenOneIsWhereTimeBegins) {
  ReadWatch watch;
  watch.OnBegun(0, 0);
  watch.OnLooked(50 * kMs, 50 * kMs, kOne, true);  // came some time ago
  watch.OnLooked(50 * kMs, 52 * kMs, kOne, true);  // began some time ago
  EXPECT_EQ(watch.sum(), SeenReads());
  watch.OnLooked(52 * kMs, 56 * kMs, kOne, false);
  EXPECT_EQ(watch.sum(), (SeenReads{.reads = 1, .bytes = 1000, .seconds = 4e-3}));
}

TEST(ReadWatch, LooksThatFindNothingDoNotBreakARead) {
  ReadWatch watch;
  watch.OnBegun(0, 0);
  for (Nanos now = 0; now < 3 * kMs; now += ReadWatch::kBlink / 2) {
    watch.OnLooked(now, now, {}, true);
  }
  watch.OnLooked(3 * kMs, 3 * kMs, kOne, false);
  EXPECT_DOUBLE_EQ(watch.sum().seconds, 3e-3);
}

// A medium that gives a read a millisecond, and a loop that looks when it comes by: now and again
// long after the end, often just when it happens.
TEST(ReadWatch, TheSpeedIsTheMediumsHoweverSeldomSomebodyLooks) {
  Rng rng(TestSeed());
  ReadWatch watch;
  std::deque<Nanos> ends;  // of what is under way
  Nanos now = 0, free_at = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (rng.Uniform() < 0.5) {
      if (ends.empty()) watch.OnBegun(now, now);
      free_at = std::max(free_at, now) + kMs;
      ends.push_back(free_at);
    }
    if (ends.empty() || rng.Uniform() < 0.2) {
      now += static_cast<Nanos>(rng.Below(30)) * kMs;  // computing, or nobody asks
    }
    if (ends.empty()) continue;
    const Nanos began = now;
    if (rng.Uniform() < 0.7) now = std::max(now, ends.front());  // waits
    SeenReads came;
    for (; !ends.empty() && ends.front() <= now; ends.pop_front()) {
      ++came.reads;
      came.bytes += kOne.bytes;
    }
    watch.OnLooked(began, now, came, !ends.empty());
  }
  const SeenReads& sum = watch.sum();
  ASSERT_GT(sum.reads, 500u);
  EXPECT_NEAR(static_cast<double>(sum.reads) * 1e-3 / sum.seconds, 1, 0.1);
}

}  // namespace
}  // namespace troupe
