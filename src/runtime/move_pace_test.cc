#include "runtime/move_pace.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

// Leaves a tenth of a second, and a row at least.
PassGaps ATenthOfASecond() {
  return {.between = {}, .rows = [](const RowSeconds& seconds, std::uint32_t most) {
            std::uint32_t rows = 1;
            while (rows < most && seconds(2 * rows) <= 0.1 && seconds(1) > 0) rows *= 2;
            return rows;
          }};
}

TEST(MovePace, TakesAllThatThereIsWhereNobodySaysHowMuch) {
  EXPECT_GT(MovePace().Most({}), std::size_t{1} << 40);
}

TEST(MovePace, TakesTheLeastWhileNothingWasMeasured) {
  EXPECT_EQ(MovePace().Most(ATenthOfASecond()), 1u << 18);
}

TEST(MovePace, TakesWhatTheTimeHoldsAtTheSpeedOfLate) {
  MovePace pace;
  pace.Note(1 << 30, 1);
  const std::size_t fast = pace.Most(ATenthOfASecond());
  EXPECT_LE(fast, (1u << 30) / 10);
  EXPECT_GT(fast, (1u << 30) / 20);
  for (int i = 0; i < 50; ++i) pace.Note(1 << 20, 1);
  EXPECT_LT(pace.Most(ATenthOfASecond()), 1u << 20);
}

}  // namespace
}  // namespace troupe
