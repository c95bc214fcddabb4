#include "cluster/plan/coming_speed.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr std::uint64_t kExpertBytes = 1'000'000;

TEST(ExpertsAtOnce, AreWhatTheDiskGivesInATenthOfASecond) {
  EXPECT_EQ(ExpertsAtOnce(50e6, kExpertBytes), 5u);
  EXPECT_EQ(ExpertsAtOnce(90e6, kExpertBytes), 9u);
}

TEST(ExpertsAtOnce, AreTwoToSixteen) {
  EXPECT_EQ(ExpertsAtOnce(1e6, kExpertBytes), 2u);
  EXPECT_EQ(ExpertsAtOnce(3e9, kExpertBytes), 16u);
}

TEST(ExpertsAtOnce, AreTwoWhereTheDisksSpeedIsNotKnown) {
  EXPECT_EQ(ExpertsAtOnce(0, kExpertBytes), 2u);
}

}  // namespace
}  // namespace troupe
