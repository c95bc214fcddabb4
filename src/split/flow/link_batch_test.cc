#include "split/flow/link_batch.h"

#include <gtest/gtest.h>

#include "split/flow/cut_plan.h"

namespace troupe {
namespace {

constexpr Nanos kLinkMs = 1'000'000;
constexpr std::size_t kBytes = 1'000'000;  // of a message: 100 ms of a link of 10 MB a second
constexpr double kCarries = 1e7;

TEST(LinkBatch, FourMessagesAtATimeMeasureTheLinkAndNotAFourthOfIt) {
  for (const Nanos round_trip : {10 * kLinkMs, 1000 * kLinkMs}) {
    CutMeter shared, one_by_one;
    for (int i = 0; i < 4; ++i) shared.OnSent();
    for (int i = 0; i < 4; ++i) one_by_one.OnSent();
    for (int i = 1; i <= 4; ++i) {
      shared.OnThrough(kBytes, 0, round_trip + 400 * kLinkMs, round_trip);
      one_by_one.OnThrough(kBytes, 0, round_trip + i * 100 * kLinkMs, round_trip);
    }
    EXPECT_NEAR(shared.bytes_a_second(), kCarries, 1) << round_trip;
    EXPECT_NEAR(one_by_one.bytes_a_second(), kCarries, 1) << round_trip;
  }
}

TEST(LinkBatch, MessagesThatNeverEndMeasureTheSame) {
  CutMeter meter;
  Nanos through[40] = {};
  for (int i = 0; i < 4; ++i) meter.OnSent();
  for (int i = 0; i < 40; ++i) {
    through[i] = 10 * kLinkMs + (i + 1) * 100 * kLinkMs;
    meter.OnSent();
    meter.OnThrough(kBytes, i < 4 ? 0 : through[i - 4], through[i], 10 * kLinkMs);
  }
  EXPECT_NEAR(meter.bytes_a_second(), kCarries, 1);
}

TEST(LinkBatch, TimesBetweenMessagesAndThoseThatWereLostDoNotCount) {
  LinkBatch batch;
  batch.OnSent();
  batch.OnSent();
  EXPECT_FALSE(batch.OnThrough(kBytes, 0, 110 * kLinkMs, 10 * kLinkMs))
      << "another one is on its way";
  const auto first = batch.OnLost();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes, kBytes);
  EXPECT_DOUBLE_EQ(first->seconds, 0.11);
  EXPECT_NEAR(first->round_trip_seconds, 0.01, 1e-9);
  batch.OnSent();
  const auto second = batch.OnThrough(kBytes, 5000 * kLinkMs, 5110 * kLinkMs, 10 * kLinkMs);
  ASSERT_TRUE(second);
  EXPECT_NEAR(second->seconds, 0.11, 1e-9) << "nothing was sent for seconds";
  batch.OnSent();
  EXPECT_FALSE(batch.OnLost()) << "nothing came through";
}

}  // namespace
}  // namespace troupe
