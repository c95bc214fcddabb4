#include "placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/device_packing.h"
#include "placement/problems_for_test.h"
#include "placement/remote_calls.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlacementProblem TwoServers() { return SmallProblem({3, 2}, {{{5, 1}, {1, 4}}, {{0, 2}, {3, 0}}}); }

void ExpectInvalid(const Placement& placement, const char* words) {
  const Status status = Validate(placement, TwoServers());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(words));
}

TEST(PlacementTest, EveryRuleThatIsBrokenIsSaid) {
  EXPECT_TRUE(Validate(Placement{{{{0, 1, 2}}, {{2, 3}}}}, TwoServers()).ok());
  ExpectInvalid({{{{0, 1, 2}}}}, "a placement on 1 servers, the problem has 2");
  ExpectInvalid({{{{0, 1, 2}, {}}, {{3}}}}, "on 2 devices, it has 1");
  ExpectInvalid({{{{0, 1, 2}}, {{2}}}}, "layer 1, expert 1 lies on no device");
  ExpectInvalid({{{{0, 1, 2}}, {{1, 2, 3}}}}, "its experts take 3 bytes, it has 2");
  ExpectInvalid({{{{0, 2, 1}}, {{3}}}}, "not in rising order at layer 0, expert 1");
  ExpectInvalid({{{{0, 1, 2}}, {{3, 4}}}}, "expert number 4, the model has 4");
  PlacementProblem problem = TwoServers();
  problem.servers[0].devices.push_back(problem.servers[0].devices[0]);
  const Status twice = Validate(Placement{{{{0, 1, 2}, {2}}, {{2, 3}}}}, problem);
  EXPECT_THAT(twice.message(), HasSubstr("lies on another device of the server, too"));
}

TEST(RemoteCallsTest, AreTheActivationsOfWhatTheServerLacks) {
  const RemoteCalls calls = CountRemoteCalls(TwoServers(), Placement{{{{0, 3}}, {{1, 2}}}});
  EXPECT_THAT(calls.by_server, ElementsAre(1 + 1, 0 + 0));
  EXPECT_EQ(calls.remote, 2);
  EXPECT_EQ(calls.all, 16);
  EXPECT_DOUBLE_EQ(calls.LocalRatio(), 14.0 / 16);
}

TEST(DevicePackingTest, SpreadsTheBusyExpertsBySpeed) {
  PlacementProblem problem = SmallProblem({0}, {{{8, 4, 4, 2}}});
  problem.servers[0].devices = {{.memory = 4, .speed = 1, .load_bytes_per_second = 1},
                                {.memory = 4, .speed = 2, .load_bytes_per_second = 1}};
  HolderTable holders(problem);
  for (ExpertIndex e = 0; e < 4; ++e) holders.Add(0, e);
  const Placement placement = PackDevices(problem, holders).value();
  // 8 to the fast one (4 s against 8), 4 to the slow one (4 against 6), 4 to the fast one (6
  // against 8), 2 to the slow one (6 against 7).
  EXPECT_THAT(placement.experts[0], ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2)));
}

TEST(DevicePackingTest, WhatStaysOnAServerStaysOnItsDevice) {
  PlacementProblem problem = SmallProblem({0}, {{{8, 4, 4, 2}}});
  problem.servers[0].devices = {{.memory = 2, .load_bytes_per_second = 1},
                                {.memory = 2, .load_bytes_per_second = 1}};
  HolderTable holders(problem);
  for (ExpertIndex e = 0; e < 4; ++e) holders.Add(0, e);
  const Placement before{{{{2, 3}, {0}}}};
  const Placement after = PackDevices(problem, holders, &before).value();
  EXPECT_THAT(after.experts[0], ElementsAre(ElementsAre(2, 3), ElementsAre(0, 1)));
}

TEST(DevicePackingTest, PacksTightlyWhenBalanceWouldNotFit) {
  PlacementProblem problem = SmallProblem({0}, {{{1, 1, 1, 9}}});
  problem.experts = ExpertTable({{3_B, 3_B, 2_B, 4_B}});
  problem.servers[0].devices = {{.memory = 6, .load_bytes_per_second = 1},
                                {.memory = 6, .load_bytes_per_second = 1}};
  HolderTable holders(problem);
  for (ExpertIndex e = 0; e < 4; ++e) holders.Add(0, e);
  const Placement placement = PackDevices(problem, holders).value();
  EXPECT_TRUE(Validate(placement, problem).ok()) << Validate(placement, problem).message();
}

TEST(DevicePackingTest, BringsWhatNobodyHoldsInThePlaceOfTheLeastUsedDuplicate) {
  const PlacementProblem problem = SmallProblem({2, 2}, {{{9, 5, 1}}, {{9, 6, 3}}});
  Placement placement{{{{0, 1}}, {{0, 1}}}};
  ASSERT_TRUE(CoverMissing(problem, placement).ok());
  // Server 0 would lose 5 and win 1, server 1 lose 6 and win 3.
  EXPECT_THAT(placement.experts[1][0], ElementsAre(0, 2));
}

TEST(DevicePackingTest, SaysWhenSizesAreTooUneven) {
  PlacementProblem problem = SmallProblem({4, 4}, {{{1, 1, 1}}, {{1, 1, 1}}});
  problem.experts = ExpertTable({{2_B, 2_B, 3_B}});  // 7 of 8 bytes
  Placement placement{{{{0}}, {{1}}}};
  const Status status = CoverMissing(problem, placement);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("layer 0, expert 2: 3 B find no room"));
}

TEST(DevicePackingTest, FreeMemoryGoesToWhatTheServersUsersWantMost) {
  const PlacementProblem problem = SmallProblem({2, 3}, {{{9, 5, 1}}, {{0, 0, 0}}});
  Placement placement{{{{0}}, {{1, 2}}}};
  FillFreeMemory(problem, placement);
  EXPECT_THAT(placement.experts[0][0], ElementsAre(0, 1));
  EXPECT_THAT(placement.experts[1][0], ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace troupe
