#include "split/flow/capability.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertNeeds kNeeds{.experts = 100, .bytes = 1_MiB, .seconds = 0.01, .a_token = 10};
constexpr DeviceShare kPlenty{.processors = 1, .memory = 1_GiB, .power = 1};

TEST(Capability, OfADeviceWithPlentyOfAllIsTheCap) {
  EXPECT_EQ(CapabilityOf(kPlenty, kNeeds),
            (Capability{.experts = 40, .token_seconds = 0.1, .limit = "--most-experts"}));
  EXPECT_EQ(CapabilityOf(kPlenty, kNeeds, {.most = 1}).experts, 100u);
}

TEST(Capability, MemorySetsTheLimitWhereItHoldsLess) {
  DeviceShare small = kPlenty;
  small.memory = 7_MiB;
  EXPECT_EQ(CapabilityOf(small, kNeeds).experts, 7u);
  EXPECT_EQ(CapabilityOf(small, kNeeds).limit, "memory");
}

TEST(Capability, SpeedSetsItWhereATokenWouldTakeTooLong) {
  DeviceShare busy = kPlenty;
  busy.processors = 0.1;  // a token takes a second, where half a second is allowed
  EXPECT_EQ(CapabilityOf(busy, kNeeds),
            (Capability{.experts = 20, .token_seconds = 1, .limit = "speed"}));
  DeviceShare weak = busy;
  weak.power = 0.5;
  EXPECT_EQ(CapabilityOf(weak, kNeeds).experts, 10u);
}

TEST(Capability, WithoutAMeasurementSpeedSetsNoLimit) {
  ExpertNeeds unknown = kNeeds;
  unknown.seconds = 0;
  EXPECT_EQ(CapabilityOf({.processors = 0.01, .memory = 1_GiB}, unknown).experts, 40u);
}

TEST(Capability, NeverGrowsWhenTheDeviceHasLess) {
  Rng rng(TestSeed());
  for (int round = 0; round < 1000; ++round) {
    const DeviceShare more{.processors = rng.Uniform(),
                           .memory = Bytes(rng.Below(200'000'000)),
                           .power = rng.Uniform()};
    const DeviceShare less{.processors = more.processors * rng.Uniform(),
                           .memory = Bytes(rng.Below(more.memory.count() + 1)),
                           .power = more.power * rng.Uniform()};
    const Capability a = CapabilityOf(more, kNeeds), b = CapabilityOf(less, kNeeds);
    ASSERT_LE(b.experts, a.experts);
    ASSERT_LE(a.experts, 40u);
    ASSERT_GE(b.token_seconds, a.token_seconds);
  }
}

TEST(BatteryShare, IsAllOnTheMainsAndLessOfAnEmptyingBattery) {
  EXPECT_EQ(BatteryShare({}, false), 1);
  EXPECT_EQ(BatteryShare(0.1, false), 1) << "it is charged";
  EXPECT_EQ(BatteryShare(0.8, true), 1);
  EXPECT_EQ(BatteryShare(0.25, true), 0.5);
  EXPECT_EQ(BatteryShare(0.01, true), 0.1);
}

TEST(CapShare, IsOfTheCapUnderWhichSpeedsWereMeasured) {
  EXPECT_EQ(CapShare({}, {}), 1);
  EXPECT_EQ(CapShare(15, 15), 1) << "the speeds hold it";
  EXPECT_EQ(CapShare(15, 60), 0.25);
  EXPECT_EQ(CapShare(60, 15), 1);
  EXPECT_EQ(CapShare(1, 60), 0.1);
  EXPECT_EQ(CapShare(15, {}), 1) << "nobody knows of what";
}

TEST(SteadyNumber, FollowsOnlyWhatLasts) {
  SteadyNumber number(100);
  EXPECT_EQ(number.Follow(10, 0), 10);
  EXPECT_EQ(number.Follow(10.5, 10), 10) << "near enough";
  EXPECT_EQ(number.Follow(20, 20), 10);
  EXPECT_EQ(number.Follow(10, 60), 10) << "it was a moment";
  EXPECT_EQ(number.Follow(20, 70), 10);
  EXPECT_EQ(number.Follow(25, 169), 10);
  EXPECT_EQ(number.Follow(25, 170), 25);
  EXPECT_EQ(number.Follow(5, 180), 25);
  EXPECT_EQ(number.Follow(50, 290), 25) << "on the other side it begins anew";
  EXPECT_EQ(number.Follow(50, 390), 50);
}

}  // namespace
}  // namespace troupe
