#include "troupe/progress.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ProgressTest, TheTimeLeftIsToldOnceAPartIsDone) {
  EXPECT_EQ(TimeLeftText(0, 3), "");
  EXPECT_EQ(TimeLeftText(0.25, 3), "9 s left");
  EXPECT_EQ(TimeLeftText(1, 3), "0 s left");
  EXPECT_EQ(TimeLeftText(1.5, 3), "0 s left") << "more than was expected";
}

}  // namespace
}  // namespace troupe
