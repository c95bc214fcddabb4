#include "split/cut_pause.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(CutPause, AnyFailureBeginsALongerOneAndThoseWithinItCountOnce) {
  constexpr Nanos kSecond = 1'000'000'000;
  CutPause pause;
  EXPECT_FALSE(pause.OnOver(Status(Code::kCancelled, "stopped"), 0));
  EXPECT_FALSE(pause.IsPausedAt(0));
  EXPECT_TRUE(pause.OnOver(Error(Code::kUnavailable, "cut off"), 0));
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(pause.OnOver(DataLoss("the same"), 1));
  EXPECT_TRUE(pause.IsPausedAt(kSecond - 1));
  EXPECT_FALSE(pause.IsPausedAt(kSecond));
  EXPECT_TRUE(pause.OnOver(Error(Code::kDeadlineExceeded, "late"), kSecond));
  EXPECT_TRUE(pause.IsPausedAt(3 * kSecond - 1));
  EXPECT_FALSE(pause.OnOver(OkStatus(), 3 * kSecond));
  EXPECT_TRUE(pause.OnOver(Error(Code::kUnavailable, "cut off"), 4 * kSecond));
  EXPECT_FALSE(pause.IsPausedAt(5 * kSecond)) << "one was answered meanwhile";
}

}  // namespace
}  // namespace troupe
