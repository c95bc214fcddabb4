#include "cluster/transport/redial_pause.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RedialPause, DoublesUpToTheLongest) {
  RedialPause pause(100, 500);
  EXPECT_EQ(pause.After(0), 100);
  EXPECT_EQ(pause.After(0), 200);
  EXPECT_EQ(pause.After(0), 400);
  EXPECT_EQ(pause.After(0), 500);
  EXPECT_EQ(pause.After(0), 500);
}

TEST(RedialPause, ALinkThatLastedBeginsAnew) {
  RedialPause pause(100, 500);
  for (int i = 0; i < 4; ++i) pause.After(0);
  EXPECT_EQ(pause.After(500), 100);
  EXPECT_EQ(pause.After(0), 200);
}

TEST(RedialPause, ALinkThatOpensAndEndsAtOnceIsAFailure) {
  RedialPause pause(100, 500);
  EXPECT_EQ(pause.After(1), 100);
  EXPECT_EQ(pause.After(99), 200);
  EXPECT_EQ(pause.After(199), 400);
  EXPECT_EQ(pause.After(400), 100);
}

}  // namespace
}  // namespace troupe
