#include "troupe/transfer_speed.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(TransferSpeed, CountsWhatCameAndNotWhatWasThere) {
  TransferSpeed speed;
  EXPECT_EQ(speed.Text(1_MiB), "just begun");
  speed.Note(0, 100_MiB);
  speed.Note(2, 120_MiB);
  EXPECT_EQ(speed.Text(600_MiB), "10.0 MiB/s, 60 s left");
}

TEST(TransferSpeed, IsThatOfTheLastSeconds) {
  TransferSpeed speed;
  for (int second = 0; second <= 100; ++second) {
    speed.Note(second, Bytes(std::uint64_t(second) << 20));
  }
  speed.Note(110, 200_MiB);
  EXPECT_NEAR(*speed.bytes_per_second(), 10.0 * (1 << 20), 1 << 20);
}

TEST(TransferSpeed, BeginsAnewWhenBytesAreThrownAway) {
  TransferSpeed speed;
  speed.Note(0, 0_MiB);
  speed.Note(1, 100_MiB);
  speed.Note(2, 0_MiB);
  EXPECT_EQ(speed.bytes_per_second(), std::nullopt);
  speed.Note(4, 2_MiB);
  EXPECT_EQ(speed.Text(2_MiB), "1.0 MiB/s, 2 s left");
}

TEST(TransferSpeed, SaysWhenNothingComes) {
  TransferSpeed speed;
  speed.Note(0, 5_MiB);
  speed.Note(20, 5_MiB);
  EXPECT_EQ(speed.Text(1_MiB), "nothing comes");
}

TEST(TimeText, HasTheUnitThatPeopleWouldUse) {
  EXPECT_EQ(TimeText(45), "45 s");
  EXPECT_EQ(TimeText(720), "12 min");
  EXPECT_EQ(TimeText(12240), "3.4 h");
}

}  // namespace
}  // namespace troupe
