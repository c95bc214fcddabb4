#include "cluster/speed_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanos kLookSecond = 1'000'000'000;

class SpeedNewsTest : public testing::Test {
 protected:
  // The disk's bytes a second, and a link's round trip.
  std::vector<std::string> Look(double disk, double round_trip) {
    now_ += kLookSecond;
    // Never twice the same, as measurements are.
    jitter_ = jitter_ > 1 ? 1 : 1.01;
    return news_.Look({.disk_bytes_per_second = disk * jitter_,
                       .links = {{.peer = "b", .round_trip_seconds = round_trip * jitter_}}},
                      now_);
  }
  void Usually() {
    for (int i = 0; i < 8; ++i) EXPECT_THAT(Look(1e8, 0.001), IsEmpty());
  }

  SpeedNews news_;
  Nanos now_ = 0;
  double jitter_ = 1;
};

TEST_F(SpeedNewsTest, ALinkBelowAQuarterOfItsSpeedIsToldOnceAndSoIsItsReturn) {
  Usually();
  EXPECT_THAT(Look(1e8, 0.1), IsEmpty()) << "one that took long is none of them";
  EXPECT_THAT(Look(1e8, 0.001), IsEmpty());
  EXPECT_THAT(Look(1e8, 0.1), IsEmpty());
  EXPECT_THAT(Look(1e8, 0.1),
              ElementsAre("the link to b is slow: 100 ms for what takes 1 ms usually"));
  for (int i = 0; i < 50; ++i) EXPECT_THAT(Look(1e8, 0.1), IsEmpty());
  EXPECT_THAT(Look(1e8, 0.0015), ElementsAre(testing::StartsWith("the link to b is as fast as")));
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Look(1e8, 0.1), IsEmpty()) << "told a moment ago";
  now_ += 30 * kLookSecond;
  EXPECT_THAT(Look(1e8, 0.1), testing::SizeIs(1));
}

TEST_F(SpeedNewsTest, TheOwnDiskToo) {
  Usually();
  EXPECT_THAT(Look(3e7, 0.001), IsEmpty());
  EXPECT_THAT(Look(3e7, 0.001), IsEmpty()) << "a third of its speed";
  EXPECT_THAT(Look(1e7, 0.001), IsEmpty());
  EXPECT_THAT(Look(1e7, 0.001), ElementsAre(testing::StartsWith("the own disk is slow: 10")));
  EXPECT_THAT(Look(6e7, 0.001), ElementsAre(testing::StartsWith("the own disk is as fast as")));
}

TEST_F(SpeedNewsTest, WhatIsSlowFromTheBeginningOrHardlyLongerIsNoNews) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Look(1e5, 0.5), IsEmpty());
  for (int i = 0; i < 100; ++i) EXPECT_THAT(Look(1e5, 0.5), IsEmpty());
  SpeedNews busy;
  Nanos now = 0;
  for (int i = 0; i < 100; ++i) {
    const double round_trip = i < 50 ? 100e-6 : 3e-3 + i * 1e-6;  // 30 times, and yet short
    EXPECT_THAT(busy.Look({.links = {{.peer = "b", .round_trip_seconds = round_trip + i * 1e-9}}},
                          now += kLookSecond),
                IsEmpty());
  }
}

TEST_F(SpeedNewsTest, WithoutANewMeasurementNothingIsLearntOrTold) {
  const NodeMeasures none{.links = {{.peer = "b"}}};
  const NodeMeasures fast{.links = {{.peer = "b", .round_trip_seconds = 0.001}}};
  const NodeMeasures slow{.links = {{.peer = "b", .round_trip_seconds = 0.5}}};
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(news_.Look(none, now_ += kLookSecond), IsEmpty());
    EXPECT_THAT(news_.Look(fast, now_ += kLookSecond), IsEmpty());
  }
  for (int i = 0; i < 10; ++i) EXPECT_THAT(news_.Look(slow, now_ += kLookSecond), IsEmpty());
}

TEST_F(SpeedNewsTest, APeerThatIsUnknownNowIsForgotten) {
  Usually();
  EXPECT_THAT(news_.Look({.links = {}}, now_), IsEmpty());
  for (int i = 0; i < 8; ++i) EXPECT_THAT(Look(1e8, 0.5), IsEmpty());
}

}  // namespace
}  // namespace troupe
