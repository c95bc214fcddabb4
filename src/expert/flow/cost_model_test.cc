#include "expert/flow/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe {
namespace {

RunningMean Mean(double value) { return {.value = value, .samples = 1}; }

// 100 us and 1 GB/s for small requests, 1 ms and 2 GB/s for large ones.
DiskCost Disk() {
  return {.direct = true,
          .reads = {{.request = 4_KiB, .lone_seconds = Mean(1e-4), .bytes_per_second = Mean(1e9)},
                    {.request = 1_MiB, .lone_seconds = Mean(1e-3), .bytes_per_second = Mean(2e9)}}};
}

TEST(RunningMeanTest, TheFirstSamplesWeighAlike) {
  RunningMean mean;
  EXPECT_FALSE(mean.measured());
  for (const double sample : {3.0, 5.0, 10.0}) mean.Note(sample);
  EXPECT_DOUBLE_EQ(mean.value, 6.0);
  EXPECT_EQ(mean.samples, 3u);
}

TEST(RunningMeanTest, FollowsAChangeHoweverMuchItHasSeen) {
  RunningMean mean;
  for (int i = 0; i < 10'000; ++i) mean.Note(1.0);
  for (int i = 0; i < 64; ++i) mean.Note(3.0);
  // (15/16)^64 = 0.016 of the old value is left.
  EXPECT_NEAR(mean.value, 3.0, 0.04);
  EXPECT_LT(mean.value, 3.0);
}

TEST(RunningMeanTest, IsNotMovedByWhatIsNoMeasurement) {
  RunningMean mean = Mean(2.0);
  for (const double sample : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    mean.Note(sample);
  }
  EXPECT_EQ(mean, Mean(2.0));
}

TEST(LoadShapeTest, RequestsAreExtentsCutIntoPieces) {
  EXPECT_EQ((LoadShape{.bytes = 3_MiB, .extents = 3}).Request(), 1_MiB);
  EXPECT_EQ((LoadShape{.bytes = 300_KiB, .extents = 3}).Request(), 100_KiB);
  EXPECT_EQ((LoadShape{.bytes = 10_MiB, .extents = 1, .piece = 256_KiB}).Request(), 256_KiB);
}

TEST(DiskCostTest, GivesWhatWasMeasuredAtTheSizesThatWere) {
  EXPECT_DOUBLE_EQ(Disk().LoneSeconds(4_KiB), 1e-4);
  EXPECT_DOUBLE_EQ(Disk().LoneSeconds(1_MiB), 1e-3);
  EXPECT_DOUBLE_EQ(Disk().BytesPerSecond(1_MiB), 2e9);
}

TEST(DiskCostTest, InterpolatesAlongTheLogarithmOfTheSize) {
  EXPECT_DOUBLE_EQ(Disk().BytesPerSecond(64_KiB), 1.5e9);  // 4 KiB x 16 = 64 KiB, x 16 = 1 MiB
  EXPECT_DOUBLE_EQ(Disk().LoneSeconds(64_KiB), 5.5e-4);
}

TEST(DiskCostTest, BeyondTheTableTheRateIsTheNearestOnes) {
  EXPECT_DOUBLE_EQ(Disk().LoneSeconds(1_KiB), 1e-4);
  EXPECT_DOUBLE_EQ(Disk().BytesPerSecond(1_KiB), 1e9);
  EXPECT_DOUBLE_EQ(Disk().BytesPerSecond(64_MiB), 2e9);
  EXPECT_DOUBLE_EQ(Disk().LoneSeconds(3_MiB), 1e-3 + 2 * 1048576 / 2e9);
}

TEST(DiskCostTest, OneRequestTakesWhatItTookAndManyStream) {
  EXPECT_DOUBLE_EQ(Disk().SecondsToLoad({.bytes = 4_KiB}), 1e-4 + 4096 / 1e9);
  EXPECT_DOUBLE_EQ(Disk().SecondsToLoad({.bytes = 1_MiB}), 1e-3);
  EXPECT_DOUBLE_EQ(Disk().SecondsToLoad({.bytes = 8_MiB}), 1e-4 + 8 * 1048576 / 2e9);
  EXPECT_DOUBLE_EQ(Disk().SecondsToStream({.bytes = 8_MiB}), 8 * 1048576 / 2e9);
}

TEST(DiskCostTest, TheSameBytesInMorePlacesTakeLonger) {
  const LoadShape one{.bytes = 768_KiB, .extents = 1}, three{.bytes = 768_KiB, .extents = 3};
  EXPECT_GT(Disk().SecondsToStream(three), Disk().SecondsToStream(one));
}

TEST(DiskCostTest, WhatRunsSawCountsForMoreThanTheProbe) {
  DiskCost disk = Disk();
  disk.NoteRun(Bytes(1'000'000'000), 1000, 2.0);  // requests of a megabyte at 0.5 GB/s
  EXPECT_DOUBLE_EQ(disk.BytesPerSecond(1_MiB), 5e8);
  EXPECT_DOUBLE_EQ(disk.BytesPerSecond(4_KiB), 1e9);
  disk.NoteRun(Bytes(1'000'000'000), 200'000, 2.5);  // of 5000 bytes at 0.4 GB/s
  EXPECT_DOUBLE_EQ(disk.BytesPerSecond(4_KiB), 4e8);
  EXPECT_DOUBLE_EQ(disk.reads[1].bytes_per_second.value, 2e9);  // the probe's is kept beside it
}

TEST(DiskCostTest, ARunThatReadLittleSaysNothing) {
  DiskCost disk = Disk();
  disk.NoteRun(1_MiB, 1, 1.0);
  disk.NoteRun(64_MiB, 64, 0.001);
  disk.NoteRun(64_MiB, 0, 1.0);
  EXPECT_EQ(disk, Disk());
  DiskCost unmeasured;
  unmeasured.NoteRun(64_MiB, 64, 1.0);
  EXPECT_FALSE(unmeasured.measured());
}

TEST(DiskCostTest, ASlowerLinkBeforeItLimitsItAndAFasterOneDoesNot) {
  const DiskCost slow = Disk().Behind(1e8, 1e-3);
  EXPECT_DOUBLE_EQ(slow.BytesPerSecond(1_MiB), 1e8);
  EXPECT_DOUBLE_EQ(slow.LoneSeconds(1_MiB), 1048576 / 1e8 + 1e-3);
  EXPECT_DOUBLE_EQ(slow.LoneSeconds(4_KiB), 1e-4 + 1e-3);
  EXPECT_EQ(Disk().Behind(1e12, 0), Disk());
  EXPECT_EQ(Disk().Behind(0, 0), Disk());
}

TEST(CostModelTest, AMeasuredExpertTakesItsFirstRowAndFurtherOnes) {
  CostModel model;
  model.NoteExpert("Q4_K", 1e-3, 1e-5);
  EXPECT_DOUBLE_EQ(*model.SecondsToRun("Q4_K", 1_MiB, 1), 1e-3);
  EXPECT_DOUBLE_EQ(*model.SecondsToRun("Q4_K", 1_MiB, 11), 1.1e-3);
  EXPECT_DOUBLE_EQ(*model.SecondsToRun("Q4_K", 1_MiB, 0.5), 1e-3);
  EXPECT_DOUBLE_EQ(*model.SecondsToRun("Q4_K", 1_MiB, 0), 0);
}

TEST(CostModelTest, MeasurementsOfAShapeAreAveragedAndOfOthersKeptApart) {
  CostModel model;
  model.NoteExpert("a", 1e-3, 1e-5);
  model.NoteExpert("b", 9e-3, 9e-5);
  model.NoteExpert("a", 3e-3, 3e-5);
  EXPECT_DOUBLE_EQ(model.Find("a")->first_row.value, 2e-3);
  EXPECT_DOUBLE_EQ(model.Find("a")->further_row.value, 2e-5);
  EXPECT_DOUBLE_EQ(model.Find("b")->first_row.value, 9e-3);
  EXPECT_EQ(model.Find("c"), nullptr);
}

TEST(CostModelTest, AnUnmeasuredExpertIsReadFromMemoryOnceARow) {
  CostModel model;
  EXPECT_EQ(model.SecondsToRun("x", 1_MiB, 1), std::nullopt);
  model.memory_bytes_per_second.Note(1e9);
  EXPECT_DOUBLE_EQ(*model.SecondsToRun("x", Bytes(1'000'000), 1), 1e-3);
  EXPECT_DOUBLE_EQ(*model.SecondsToRun("x", Bytes(1'000'000), 4), 4e-3);
}

}  // namespace
}  // namespace troupe
