#include "split/cloud_queue.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kOneSecond = 1'000'000'000;
constexpr CloudLoad kBusy{
    .under_way = 6, .to_read = 1000, .answer_seconds = 4, .read_seconds = 0.001};

TEST(CloudQueue, NothingWaitsWhereNothingWasTold) {
  EXPECT_EQ(CloudQueue().WaitSeconds(0, 4, kOneSecond), 0);
}

TEST(CloudQueue, PromptsThatAreReadBeforeItAreWaitedForAsTimePasses) {
  CloudQueue queue;
  queue.OnTold(kBusy, 0, 0, kOneSecond);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(0, 8, kOneSecond), 1);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(0, 8, kOneSecond + kOneSecond / 4), 0.75);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(0, 8, 9 * kOneSecond), 0);
}

TEST(CloudQueue, SoAreAnswersThatHoldItsSequencesThisEndsAsManyAsItKnows) {
  CloudQueue queue;
  queue.OnTold(kBusy, /*own_runs=*/2, 0, kOneSecond);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(2, 4, 9 * kOneSecond), 3);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(0, 4, 9 * kOneSecond), 1) << "its own have ended";
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(5, 4, 9 * kOneSecond), 6) << "it has sent more";
  EXPECT_EQ(queue.ReadsSeconds(9 * kOneSecond), 0);
}

TEST(CloudQueue, WhatThisEndSendsCountsAtOnceAndWhatItTakesBackNoMore) {
  CloudQueue queue;
  queue.OnTold(kBusy, 0, 0, kOneSecond);
  queue.OnSent(500, kOneSecond);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(0, 8, kOneSecond), 1.5);
  queue.OnTakenBack(500, kOneSecond + kOneSecond / 2);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(0, 8, kOneSecond + kOneSecond / 2), 0.5);
  queue.OnTakenBack(9000, kOneSecond + kOneSecond / 2);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(0, 8, kOneSecond + kOneSecond / 2), 0);
}

TEST(CloudQueue, WhatWasSentWithinARoundTripIsNotInWhatIsTold) {
  CloudQueue queue;
  queue.OnTold(kBusy, 0, 0, kOneSecond);
  queue.OnSent(100, kOneSecond);
  queue.OnSent(200, 2 * kOneSecond);
  queue.OnTold(kBusy, 0, 0.5, 2 * kOneSecond + kOneSecond / 4);
  EXPECT_DOUBLE_EQ(queue.WaitSeconds(0, 8, 2 * kOneSecond + kOneSecond / 4), 1.2);
}

}  // namespace
}  // namespace troupe
