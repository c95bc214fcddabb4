#include "runtime/reading_pace.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kMs = 1'000'000;

TEST(ReadingPace, IsWhatPassesTakeWhereNothingElseIsDone) {
  ReadingPace pace;
  EXPECT_EQ(pace.token_seconds(), 0);
  pace.PassBegins(1000 * kMs);
  pace.PassEnded(50, /*reads_on=*/false, 1100 * kMs);
  EXPECT_NEAR(pace.token_seconds(), 0.002, 1e-9);
  pace.PassBegins(9000 * kMs);  // nobody came meanwhile
  pace.PassEnded(50, false, 9100 * kMs);
  EXPECT_NEAR(pace.token_seconds(), 0.002, 1e-9);
}

TEST(ReadingPace, CountsWhatIsDoneBetweenPassesWhilePromptsWait) {
  ReadingPace pace;
  Nanos now = 0;
  for (int pass = 0; pass < 100; ++pass) {
    pace.PassBegins(now);
    now += 100 * kMs;
    pace.PassEnded(50, /*reads_on=*/true, now);
    pace.PassBegins(now);  // of an answer alone
    now += 20 * kMs;
    pace.PassEnded(0, true, now);
    now += 30 * kMs;  // others have the engine
  }
  EXPECT_NEAR(pace.token_seconds(), 0.003, 1e-5);
}

TEST(ReadingPace, FollowsAChange) {
  ReadingPace pace;
  Nanos now = 0;
  for (int pass = 0; pass < 60; ++pass) {
    pace.PassBegins(now);
    now += pass < 30 ? 10 * kMs : 40 * kMs;
    pace.PassEnded(10, true, now);
  }
  EXPECT_NEAR(pace.token_seconds(), 0.004, 2e-4);
}

}  // namespace
}  // namespace troupe
