#include "expert/flow/medium_speed.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kSecondOfReading = 1'000'000'000;

class MediumSpeedTest : public testing::Test {
 protected:
  void ReadFor(double seconds, double bytes_per_second) {
    for (double done = 0; done < seconds; done += 0.1) {
      bytes_ += static_cast<std::uint64_t>(0.1 * bytes_per_second);
      busy_ += 0.1;
      now_ += kSecondOfReading / 10;
      speed_.OnRead(bytes_, busy_, now_);
    }
  }

  MediumSpeed speed_;
  std::uint64_t bytes_ = 0;
  double busy_ = 0;
  Nanos now_ = 0;
};

TEST_F(MediumSpeedTest, NothingReadIsNothingKnown) {
  EXPECT_EQ(speed_.measured(), 0);
  EXPECT_EQ(speed_.Expected(1e9, 0), 0);
}

TEST_F(MediumSpeedTest, ADiskThatSlowsAfterAnHourIsKnownToBeSlowWithinSeconds) {
  ReadFor(3600, 1e9);
  EXPECT_NEAR(speed_.measured(), 1e9, 1e6);
  ReadFor(10, 1e8);
  EXPECT_LT(speed_.measured(), 1.5e8);  // of the last 10 s, 2 ^ -5 is still the old speed
  ReadFor(10, 1e9);
  EXPECT_GT(speed_.measured(), 9e8);
}

TEST_F(MediumSpeedTest, WhatIsNotReadFromIsHopedToBeWhatItWasProbedToBe) {
  ReadFor(60, 1e7);
  EXPECT_NEAR(speed_.Expected(1e9, now_), 1e7, 1e5);
  EXPECT_NEAR(speed_.Expected(1e9, now_ + 60 * kSecondOfReading), 5e8, 1e7);
  EXPECT_NEAR(speed_.Expected(1e6, now_ + 60 * kSecondOfReading), 1e7, 1e5) << "it is better";
}

TEST_F(MediumSpeedTest, WithoutNewReadsItStaysAsItIs) {
  ReadFor(5, 1e8);
  const double before = speed_.measured();
  for (int i = 0; i < 100; ++i) speed_.OnRead(bytes_, busy_, now_);
  EXPECT_EQ(speed_.measured(), before);
}

}  // namespace
}  // namespace troupe
