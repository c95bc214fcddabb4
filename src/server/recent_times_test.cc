#include "server/recent_times.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RecentTimes, KnowsNothingAtFirst) { EXPECT_EQ(RecentTimes(4).Look().count, 0u); }

TEST(RecentTimes, SaysWhatHalfAndNearlyAllStayBelow) {
  RecentTimes times(1000);
  for (int i = 200; i >= 1; --i) times.Add(i);
  EXPECT_EQ(times.Look().count, 200u);
  EXPECT_EQ(times.Look().p50, 100);
  EXPECT_EQ(times.Look().p99, 198);
}

TEST(RecentTimes, OfOneTimeBothAreThatTime) {
  RecentTimes times(4);
  times.Add(0.25);
  EXPECT_EQ(times.Look().p50, 0.25);
  EXPECT_EQ(times.Look().p99, 0.25);
}

TEST(RecentTimes, ForgetsTheOldest) {
  RecentTimes times(3);
  for (const double seconds : {9.0, 8.0, 1.0, 2.0, 3.0}) times.Add(seconds);
  EXPECT_EQ(times.Look().count, 3u);
  EXPECT_EQ(times.Look().p50, 2);
  EXPECT_EQ(times.Look().p99, 3);
}

}  // namespace
}  // namespace troupe
