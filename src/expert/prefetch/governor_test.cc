#include "expert/prefetch/governor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr GovernorOptions kOptions;

// A link on which a load takes 1 ms, and layers of 5 ms of which demand takes the given part, and
// what is needed more if some of it is read ahead.
PrefetchGovernor Measured(double demand, double ahead = 0) {
  PrefetchGovernor governor(kOptions);
  governor.OnLoad(1e-3);
  for (int i = 0; i < 200; ++i) governor.OnLayer(5e-3, demand, demand + ahead);
  return governor;
}

// Tokens until the governor changes its mind once. Every token needs one load, of 1 ms.
int RunWhile(PrefetchGovernor& governor, bool resting, double seconds) {
  int tokens = 0;
  for (; governor.resting() == resting && tokens < 100'000; ++tokens) {
    governor.OnToken(seconds, 1);
  }
  return tokens;
}

TEST(PrefetchGovernorTest, AllowsWhatFitsIntoTheLinksIdleTime) {
  EXPECT_EQ(Measured(1e-3).Allowance(), 4u);
  EXPECT_EQ(Measured(3.5e-3).Allowance(), 2u);
}

TEST(PrefetchGovernorTest, AllowsNothingOnASaturatedLink) {
  EXPECT_EQ(Measured(5e-3).Allowance(), 0u);
  EXPECT_EQ(Measured(9e-3).Allowance(), 0u);
}

TEST(PrefetchGovernorTest, AllowsNothingOnALinkThatBecameSaturated) {
  PrefetchGovernor governor = Measured(0);
  for (int i = 0; i < 200; ++i) governor.OnLayer(5e-3, 9e-3, 9e-3);
  EXPECT_EQ(governor.Allowance(), 0u);
}

TEST(PrefetchGovernorTest, AllowsNothingBeforeALoadWasMeasured) {
  PrefetchGovernor governor(kOptions);
  governor.OnLayer(5e-3, 0, 0);
  EXPECT_EQ(governor.Allowance(), 0u);
}

TEST(PrefetchGovernorTest, OnlyProbesWhileMostLoadsAreWasted) {
  PrefetchGovernor governor = Measured(0);
  for (int i = 0; i < 500; ++i) governor.OnUse(false);
  EXPECT_GT(governor.wasted_share(), kOptions.most_wasted);
  std::uint32_t allowed = 0, tokens = 0;
  for (; tokens < 1600; ++tokens) {
    allowed += governor.Allowance();
    governor.OnToken(governor.resting() ? 2e-2 : 1e-2, 1);  // so that it does not rest
  }
  EXPECT_GT(allowed, 0u);
  EXPECT_LE(allowed, tokens / kOptions.probe_every);
  for (int i = 0; i < 500; ++i) governor.OnUse(true);
  while (governor.resting()) governor.OnToken(2e-2, 1);
  EXPECT_EQ(governor.Allowance(), 5u);
}

TEST(PrefetchGovernorTest, SaysHowManyLoadsALayerHasTimeFor) {
  EXPECT_NEAR(Measured(1e-3).LoadsALayer(), 5, 1e-6);
  EXPECT_GT(PrefetchGovernor(kOptions).LoadsALayer(), 1e9);
}

TEST(PrefetchGovernorTest, LeavesItOffNowAndThenToCompare) {
  PrefetchGovernor governor = Measured(0);
  EXPECT_LE(RunWhile(governor, false, 1e-2), 8);
  EXPECT_EQ(governor.Allowance(), 0u);
  EXPECT_EQ(RunWhile(governor, true, 2e-2), static_cast<int>(kOptions.off_tokens));
  EXPECT_EQ(governor.Allowance(), 5u);  // tokens without were slower
  EXPECT_EQ(governor.rests(), 0u);
}

TEST(PrefetchGovernorTest, StopsWhenTokensAreFasterWithoutAndTriesAgainEverLater) {
  PrefetchGovernor governor = Measured(0);
  int rest = 0;
  for (int trial = 0; trial < 4; ++trial) {
    RunWhile(governor, false, 2e-2);
    const int off = RunWhile(governor, true, 1e-2);  // the trial, and the rest it leads to
    EXPECT_GT(off, rest);
    rest = off;
  }
  EXPECT_EQ(governor.rests(), 4u);
}

// Tokens whose misses vary at random, of each of which 0.4 ms is not hidden, beside work that
// varies less.
double Noisy(Rng& rng, std::uint32_t& loaded) {
  loaded = static_cast<std::uint32_t>(rng.Below(20));
  return 10e-3 + loaded * 0.4e-3 + static_cast<double>(rng.Below(1000)) * 1e-6;
}

TEST(PrefetchGovernorTest, TokensThatMissMoreAreNoReasonToStop) {
  PrefetchGovernor governor = Measured(0);
  Rng rng(TestSeed());
  for (int t = 0; t < 4000; ++t) {
    std::uint32_t loaded = 0;
    const double seconds = Noisy(rng, loaded);
    governor.OnToken(seconds, loaded);
  }
  EXPECT_LE(governor.rests(), 3u);
}

TEST(PrefetchGovernorTest, TokensThatBecomeSlowerInALongTalkAreNoReasonEither) {
  PrefetchGovernor governor = Measured(0);
  Rng rng(TestSeed());
  int on = 0, longest = 0;
  for (int t = 0; t < 8000; ++t) {
    std::uint32_t loaded = 0;
    const double seconds = Noisy(rng, loaded);
    on = governor.resting() ? 0 : on + 1;
    longest = std::max(longest, on);
    governor.OnToken(seconds + t * 1e-5, loaded);
  }
  EXPECT_LE(governor.rests(), 6u);
  EXPECT_LT(longest, static_cast<int>(kOptions.longest_on));  // nor a reason for it
}

TEST(PrefetchGovernorTest, FindsHarmThatIsSmallerThanWhatTokensDifferBy) {
  PrefetchGovernor governor = Measured(0);
  Rng rng(TestSeed());
  int on = 0;
  constexpr int kTokens = 4000;
  for (int t = 0; t < kTokens; ++t) {
    std::uint32_t loaded = 0;
    const double seconds = Noisy(rng, loaded);
    on += governor.resting() ? 0 : 1;
    governor.OnToken(seconds + (governor.resting() ? 0 : 2e-3), loaded);
  }
  EXPECT_LT(on, kTokens / 4);
  EXPECT_GT(governor.rests(), 2u);
}

TEST(PrefetchGovernorTest, TheBusierDemandKeepsTheLinkTheSurerAGuessHasToBe) {
  EXPECT_EQ(Measured(0).LeastOdds(), 0);
  EXPECT_GT(Measured(2.5e-3).LeastOdds(), 0.3);
  EXPECT_NEAR(Measured(9e-3).LeastOdds(), 0.5, 1e-3);
}

TEST(PrefetchGovernorTest, WhatIsReadAheadInTimeKeepsTheLinkBusy) {
  EXPECT_EQ(Measured(1e-3, 2e-3).LeastOdds(), Measured(3e-3).LeastOdds());
}

TEST(PrefetchGovernorTest, LooksAsFarAheadAsALoadTakesBehindWhatIsNeededBefore) {
  EXPECT_EQ(Measured(0).LayersAhead(), 1u);  // a load of 1 ms, layers of 5 ms
  PrefetchGovernor slow(kOptions);
  slow.OnLoad(11e-3);
  for (int i = 0; i < 200; ++i) slow.OnLayer(5e-3, 0, 0);
  EXPECT_EQ(slow.LayersAhead(), 3u);
  EXPECT_EQ(Measured(2e-3, 2.5e-3).LayersAhead(), 2u);
  // And of those the idle time of both may be used.
  EXPECT_EQ(Measured(2e-3, 2.5e-3).Allowance(), 6u);
}

TEST(PrefetchGovernorTest, ComparesTheLessOftenTheMoreClearlyItPays) {
  PrefetchGovernor governor = Measured(0);
  int on = 0;
  for (int trial = 0; trial < 8; ++trial) {
    const int longer = RunWhile(governor, false, 1e-2);
    EXPECT_GE(longer, on);
    on = longer;
    RunWhile(governor, true, 2e-2);
  }
  EXPECT_EQ(on, static_cast<int>(kOptions.longest_on));
  // Where it makes no difference it stays careful.
  PrefetchGovernor idle = Measured(0);
  for (int trial = 0; trial < 4; ++trial) {
    EXPECT_LE(RunWhile(idle, false, 1e-2), static_cast<int>(kOptions.on_tokens));
    RunWhile(idle, true, 1e-2);
  }
}

TEST(PrefetchGovernorTest, AHarmfulPredictorCostsLittleOverALongRun) {
  PrefetchGovernor governor = Measured(0);
  int on = 0;
  constexpr int kTokens = 4000;
  for (int t = 0; t < kTokens; ++t) {
    on += governor.resting() ? 0 : 1;
    governor.OnToken(governor.resting() ? 1e-2 : 2e-2, 1);
  }
  EXPECT_LT(on, kTokens * 0.05);
}

}  // namespace
}  // namespace troupe
