#include "expert/flow/row_speed.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RowSpeed, IsWhatPassesOfAsManyRowsTook) {
  RowSpeedMeter meter;
  meter.PassEnded(4, 0, 0.2);
  EXPECT_DOUBLE_EQ(meter.speed().Predict(4, 0), 0.2);
  EXPECT_DOUBLE_EQ(meter.speed().Predict(1, 0), 0.05);
  EXPECT_EQ(meter.speed().Predict(0, 10), 0);  // nothing is known of it
  EXPECT_FALSE(meter.speed().prompt.measured());
}

TEST(RowSpeed, ASecondPassOfASizeThatIsFasterTakesTheFirstOnesPlace) {
  RowCurve curve;
  curve.Note(2, 0.6);
  curve.Note(2, 0.36);
  EXPECT_DOUBLE_EQ(curve.At(2), 0.36);
  curve.Note(2, 0.26);  // from now on a mean
  EXPECT_DOUBLE_EQ(curve.At(2), 0.34);
  RowCurve slower;
  slower.Note(2, 0.36);
  slower.Note(2, 0.46);
  slower.Note(2, 0.38);
  EXPECT_DOUBLE_EQ(slower.At(2), 0.38);
}

TEST(RowSpeed, LiesOnLinesThroughWhatWasMeasured) {
  RowCurve curve;
  curve.Note(16, 0.3);
  curve.Note(256, 0.6);
  EXPECT_DOUBLE_EQ(curve.At(8), 0.15);
  EXPECT_DOUBLE_EQ(curve.At(136), 0.45);
  EXPECT_DOUBLE_EQ(curve.At(512), 0.92);
}

TEST(RowSpeed, OfPromptsIsWhatTheDecodesBesideThemDoNotTake) {
  RowSpeedMeter meter;
  meter.PassEnded(8, 0, 0.1);
  meter.PassEnded(8, 64, 0.3);
  EXPECT_NEAR(meter.speed().Predict(8, 64), 0.3, 0.03);
  EXPECT_NEAR(meter.speed().Predict(0, 64), 0.2, 0.03);
}

TEST(RowSpeed, OfPassesThatAreRunToBeMeasuredCountsMoreAndOfOthersNothing) {
  RowSpeedMeter meter;
  meter.set_new_share(0);
  meter.PassEnded(0, 32, 5);
  EXPECT_FALSE(meter.speed().prompt.measured());
  meter.set_new_share(kUsualPassShare);
  meter.PassEnded(0, 32, 1);
  meter.PassEnded(0, 32, 1);
  meter.set_new_share(0.75);
  meter.PassEnded(0, 32, 0.2);
  EXPECT_NEAR(meter.speed().Predict(0, 32), 0.4, 0.05);
}

TEST(RowSpeed, FollowsAChange) {
  RowSpeedMeter meter;
  meter.PassEnded(1, 0, 1.0);
  for (int pass = 0; pass < 40; ++pass) meter.PassEnded(1, 0, 0.1);
  EXPECT_NEAR(meter.speed().Predict(1, 0), 0.1, 0.001);
}

TEST(RowSpeed, OfOtherSizesFollowsAChangeMoreSlowly) {
  RowSpeedMeter meter;
  meter.PassEnded(1, 0, 0.1);
  meter.PassEnded(8, 0, 0.4);
  for (int pass = 0; pass < 30; ++pass) meter.PassEnded(1, 0, 0.2);
  EXPECT_GT(meter.speed().Predict(8, 0), 0.41);
  EXPECT_LT(meter.speed().Predict(8, 0), 1.0);
}

TEST(RowSpeed, NeverFallsWithMoreRows) {
  RowCurve curve;
  curve.Note(4, 0.5);
  curve.Note(64, 0.2);  // measured in calmer times
  for (double rows = 1; rows < 200; ++rows) EXPECT_GE(curve.At(rows + 1), curve.At(rows));
}

TEST(RowSpeed, LearnsNothingFromAPassWithoutRowsOrTime) {
  RowSpeedMeter meter;
  meter.PassEnded(0, 0, 1.0);
  meter.PassEnded(1, 1, 0.0);
  EXPECT_EQ(meter.speed(), RowSpeed());
}

}  // namespace
}  // namespace troupe
