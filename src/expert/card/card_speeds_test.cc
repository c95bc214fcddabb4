#include "expert/card/card_speeds.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(CardSpeedsTest, WhatWasNotMeasuredTakesNoTime) {
  CardSpeeds speeds;
  EXPECT_FALSE(speeds.known());
  EXPECT_EQ(speeds.CardSeconds(3), 0);
  EXPECT_EQ(speeds.ProcessorSeconds(3), 0);
  EXPECT_FALSE(speeds.CopySeconds());
}

TEST(CardSpeedsTest, TheFirstMeasurementOfTheCardCountsForNothing) {
  CardSpeeds speeds;
  speeds.NoteProcessor(1, 1, 1);
  speeds.NoteCard(1, 1, 100);
  EXPECT_FALSE(speeds.known());
  speeds.NoteCard(1, 1, 2);
  EXPECT_TRUE(speeds.known());
  EXPECT_DOUBLE_EQ(speeds.CardSeconds(1), 2);
}

TEST(CardSpeedsTest, ExpertsAreMeasuredByTheirRows) {
  CardSpeeds speeds;
  speeds.NoteProcessor(4, 4, 8);
  speeds.NoteProcessor(2, 16, 20);
  EXPECT_DOUBLE_EQ(speeds.ProcessorSeconds(1), 2);
  EXPECT_DOUBLE_EQ(speeds.ProcessorSeconds(8), 10);
}

TEST(CardSpeedsTest, MeansFollowWhatIsMeasuredLately) {
  CardSpeeds speeds;
  for (int i = 0; i < 40; ++i) speeds.NoteProcessor(1, 1, 1), speeds.NoteCopy(1);
  for (int i = 0; i < 40; ++i) speeds.NoteProcessor(1, 1, 3), speeds.NoteCopy(3);
  EXPECT_NEAR(speeds.ProcessorSeconds(1), 3, 0.01);
  EXPECT_DOUBLE_EQ(*speeds.CopySeconds(), 3);
}

}  // namespace
}  // namespace troupe
