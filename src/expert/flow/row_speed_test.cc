#include "expert/flow/row_speed.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RowSpeed, IsTheTimeOfThePassDividedByItsRows) {
  RowSpeedMeter meter;
  meter.PassEnded(4, 0, 0.2);
  meter.PassEnded(0, 100, 1.0);
  EXPECT_DOUBLE_EQ(meter.speed().decode_seconds, 0.05);
  EXPECT_DOUBLE_EQ(meter.speed().prompt_seconds, 0.01);
  EXPECT_DOUBLE_EQ(meter.speed().Predict(2, 30), 0.4);
}

TEST(RowSpeed, OfAMixedPassIsDividedAsWasExpected) {
  RowSpeedMeter meter;
  meter.PassEnded(1, 0, 0.05);
  meter.PassEnded(0, 1, 0.01);
  meter.PassEnded(4, 20, 0.8);  // twice what was expected: both are twice as slow
  EXPECT_NEAR(meter.speed().decode_seconds, 0.06, 1e-12);
  EXPECT_NEAR(meter.speed().prompt_seconds, 0.012, 1e-12);
}

TEST(RowSpeed, FollowsAChange) {
  RowSpeedMeter meter;
  meter.PassEnded(1, 0, 1.0);
  for (int pass = 0; pass < 40; ++pass) meter.PassEnded(1, 0, 0.1);
  EXPECT_NEAR(meter.speed().decode_seconds, 0.1, 0.001);
}

TEST(RowSpeed, OfAPhaseNeverSeenIsTakenFromTheOther) {
  RowSpeedMeter meter;
  meter.PassEnded(2, 0, 0.2);
  meter.PassEnded(1, 3, 0.4);
  EXPECT_NEAR(meter.speed().prompt_seconds, 0.1, 1e-12);
}

TEST(RowSpeed, LearnsNothingFromAPassWithoutRowsOrTime) {
  RowSpeedMeter meter;
  meter.PassEnded(0, 0, 1.0);
  meter.PassEnded(1, 1, 0.0);
  EXPECT_EQ(meter.speed(), RowSpeed());
}

}  // namespace
}  // namespace troupe
