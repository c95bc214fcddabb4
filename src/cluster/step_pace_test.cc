#include "cluster/step_pace.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(StepPace, AsMuchTimeAsAStepTookIsLeftToPasses) {
  StepPace pace;
  EXPECT_TRUE(pace.MayRead(0));
  pace.OnRead(100, 150);
  EXPECT_FALSE(pace.MayRead(199));
  EXPECT_TRUE(pace.MayRead(200));
  EXPECT_DOUBLE_EQ(pace.read_seconds(), 50e-9);
}

TEST(StepPace, ADiskThatHungDoesNotStopAPlanForAsLong) {
  StepPace pace;
  constexpr Nanos kMinute = 60'000'000'000;
  pace.OnRead(0, 10 * kMinute);
  EXPECT_TRUE(pace.MayRead(11 * kMinute));
}

}  // namespace
}  // namespace troupe
