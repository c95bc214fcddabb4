#include "cluster/calls/late_peers.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kOneSecond = 1'000'000'000;

TEST(LatePeers, WhoIsLateAgainAndAgainIsSaidOnceAndOnceWhenItIsInTimeAgain) {
  LatePeers late;
  int said = 0;
  for (int i = 0; i < 50; ++i) said += late.OnLate(3, i * kOneSecond / 10) ? 1 : 0;
  EXPECT_EQ(said, 1);
  EXPECT_FALSE(late.OnInTime(3, 6 * kOneSecond)) << "a moment later";
  EXPECT_TRUE(late.OnInTime(3, 60 * kOneSecond));
  EXPECT_FALSE(late.OnInTime(3, 61 * kOneSecond));
  EXPECT_FALSE(late.OnInTime(4, 61 * kOneSecond)) << "it was never late";
}

TEST(LatePeers, ACallNowAndThenIsNothing) {
  LatePeers late;
  for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(late.OnLate(1, i * 5 * kOneSecond));
}

}  // namespace
}  // namespace troupe
