#include "expert/prefetch/ahead_loads.h"

#include <gtest/gtest.h>

#include <optional>

namespace troupe {
namespace {

constexpr ExpertGrid kBookGrid{.layers = 2, .experts = 4};
constexpr ExpertId kLoaded{0, 1}, kOther{1, 2}, kVictim{0, 3};

TEST(AheadLoads, ALoadIsAheadUntilItEnds) {
  AheadLoads loads(kBookGrid);
  loads.Begin(kLoaded, std::nullopt);
  EXPECT_TRUE(loads.Has(kLoaded));
  EXPECT_EQ(loads.count(), 1u);
  EXPECT_TRUE(loads.End(kLoaded));
  EXPECT_FALSE(loads.End(kLoaded));
  EXPECT_EQ(loads.count(), 0u);
}

TEST(AheadLoads, WhatALoadPushedOutIsItsPriceUntilItIsAskedForOrForgiven) {
  AheadLoads loads(kBookGrid);
  loads.Begin(kLoaded, kVictim);
  EXPECT_TRUE(loads.WasDisplaced(kVictim));
  EXPECT_FALSE(loads.WasDisplaced(kOther));
  loads.End(kLoaded);
  EXPECT_TRUE(loads.WasDisplaced(kVictim));
  loads.ForgetDisplacing(kVictim);
  EXPECT_FALSE(loads.WasDisplaced(kVictim));
  loads.Begin(kLoaded, kVictim);
  loads.Forgive(kLoaded);
  EXPECT_FALSE(loads.WasDisplaced(kVictim));
}

TEST(AheadLoads, TheLastOneThatPushedItOutIsTheOneToForgive) {
  AheadLoads loads(kBookGrid);
  loads.Begin(kLoaded, kVictim);
  loads.Begin(kOther, kVictim);
  loads.Forgive(kLoaded);
  EXPECT_TRUE(loads.WasDisplaced(kVictim));
  loads.Forgive(kOther);
  EXPECT_FALSE(loads.WasDisplaced(kVictim));
}

TEST(AheadLoads, ALoadThatBeginsAgainHasPushedOutTheLatterAlone) {
  AheadLoads loads(kBookGrid);
  loads.Begin(kLoaded, kVictim);
  loads.Begin(kLoaded, kOther);
  EXPECT_FALSE(loads.WasDisplaced(kVictim));
  EXPECT_TRUE(loads.WasDisplaced(kOther));
}

}  // namespace
}  // namespace troupe
