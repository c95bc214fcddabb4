#include "split/growing_pause.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(GrowingPause, AnyFailureBeginsALongerOneAndThoseWithinItCountOnce) {
  constexpr Nanos kLong = 1'000'000'000;
  GrowingPause pause;
  EXPECT_FALSE(pause.OnOver(Status(Code::kCancelled, "stopped"), 0));
  EXPECT_FALSE(pause.IsPausedAt(0));
  EXPECT_TRUE(pause.OnOver(Error(Code::kUnavailable, "cut off"), 0));
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(pause.OnOver(DataLoss("the same"), 1));
  EXPECT_TRUE(pause.IsPausedAt(kLong - 1));
  EXPECT_FALSE(pause.IsPausedAt(kLong));
  EXPECT_TRUE(pause.OnOver(Error(Code::kDeadlineExceeded, "late"), kLong));
  EXPECT_TRUE(pause.IsPausedAt(3 * kLong - 1));
  EXPECT_FALSE(pause.OnOver(OkStatus(), 3 * kLong));
  EXPECT_TRUE(pause.OnOver(Error(Code::kUnavailable, "cut off"), 4 * kLong));
  EXPECT_FALSE(pause.IsPausedAt(5 * kLong)) << "one was answered meanwhile";
}

}  // namespace
}  // namespace troupe
