#include "split/flow/lane_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(LaneTimes, CountWhatEachSideDidWhileThereWereAnswers) {
  constexpr Nanos kSecond = 1'000'000'000;
  LaneTimes lanes;
  lanes.Look(/*any_answers=*/true, {false, true}, 10 * kSecond);
  lanes.Look(true, {true, true}, 12 * kSecond);
  lanes.Look(false, {false, false}, 15 * kSecond);
  lanes.Look(true, {false, false}, 20 * kSecond);
  EXPECT_THAT(lanes.busy_seconds(), ElementsAre(3, 5));
  EXPECT_THAT(lanes.idle_seconds(), ElementsAre(2, 0)) << "nobody asked from 15 to 20";
}

}  // namespace
}  // namespace troupe
