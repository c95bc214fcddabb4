#include "sim/devices.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

// Two devices of a server, and one of another.
PlacementProblem TwoServers() {
  PlacementProblem problem;
  problem.servers.resize(2);
  problem.servers[0].devices = {{.speed = 1, .load_bytes_per_second = 10},
                                {.speed = 2, .load_bytes_per_second = 20}};
  problem.servers[1].devices = {{.speed = 4, .load_bytes_per_second = 40}};
  return problem;
}

TEST(Devices, WorkBeginsWhenItComesOrWhenWhatCameBeforeIsDone) {
  Devices devices(TwoServers());
  EXPECT_EQ(devices.Occupy(0, /*now=*/1, 5), 6);
  EXPECT_EQ(devices.Occupy(0, /*now=*/2, 5), 11);
  EXPECT_EQ(devices.Occupy(0, /*now=*/20, 5), 25);
  EXPECT_EQ(devices.Occupy(1, /*now=*/2, 5), 7);
}

TEST(Devices, TheIdlestOfAServerIsItsFirstToBeDone) {
  Devices devices(TwoServers());
  EXPECT_EQ(devices.Idlest(0), 0u) << "the first of those that are alike";
  devices.Occupy(0, 0, 5);
  EXPECT_EQ(devices.Idlest(0), 1u);
  devices.Occupy(1, 0, 6);
  EXPECT_EQ(devices.Idlest(0), 0u);
  EXPECT_EQ(devices.Idlest(1), 2u);
}

TEST(Devices, AServerThatForgetsItsWorkIsFreeAndHasBeenBusy) {
  Devices devices(TwoServers());
  devices.Occupy(0, 0, 50);
  devices.Occupy(1, 0, 60);
  devices.Occupy(2, 0, 70);
  devices.Forget(0, /*now=*/3);
  EXPECT_EQ(devices.Occupy(0, 3, 1), 4);
  EXPECT_EQ(devices.Occupy(2, 3, 1), 71);
  EXPECT_EQ(devices.BusySeconds(0), 111);
  EXPECT_EQ(devices.BusySeconds(1), 71);
}

TEST(Devices, EachHasItsOwnSpeed) {
  const Devices devices(TwoServers());
  EXPECT_EQ(devices.speed(2), 4);
  EXPECT_EQ(devices.LoadSeconds(1, 100), 5);
}

}  // namespace
}  // namespace troupe
