#include "sim/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/setups_for_test.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(LossesTest, TheLastServerStays) {
  Losses losses({.mean_up_seconds = 1}, 3, 1);
  EXPECT_TRUE(losses.Lose(2));
  EXPECT_TRUE(losses.Lose(0));
  EXPECT_FALSE(losses.Lose(1));
  EXPECT_TRUE(losses.Up(1));
  losses.Return(0);
  EXPECT_TRUE(losses.Lose(1));
  EXPECT_EQ(losses.count(), 3u);
}

TEST(LossesTest, AServersTimesAreItsOwn) {
  Losses few({.mean_up_seconds = 5}, 2, 9), many({.mean_up_seconds = 5}, 50, 9);
  for (int i = 0; i < 100; ++i) many.NextUpSeconds(7);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double seconds = few.NextUpSeconds(1);
    EXPECT_EQ(many.NextUpSeconds(1), seconds);
    sum += seconds;
  }
  EXPECT_NEAR(sum / 10'000, 5, 0.2);
}

// One layer of two experts on two servers, one each. Of the two servers that users could ask, the
// second is lost at once and stays away.
SimulationSetup WithoutTheSecond(double notice_seconds) {
  SimulationSetup setup;
  setup.problem = SmallProblem({1, 1}, std::vector(2, std::vector(1, std::vector<double>(2, 1))));
  setup.problem.experts_per_token = 2;
  for (PlacementServer& server : setup.problem.servers) {
    server.devices[0].load_bytes_per_second = 100;
  }
  setup.placement = {{{{0}}, {{1}}}};
  setup.costs = {.expert = {.base = 1e-3, .each = 1e-4}, .dense = {.base = 2e-2, .each = 1e-5}};
  setup.traces = {
      {.layers = 1, .experts = 2, .top_k = 2, .tokens = 1, .ids = {0, 1}, .sequence_starts = {0}}};
  setup.workload.users.resize(2);
  setup.workload.users[0].phases = {{.mean_interval_s = 1}};
  setup.workload.prompts = 1;
  setup.losses = {.mean_up_seconds = 1e-9, .away_seconds = 1e6, .notice_seconds = notice_seconds};
  for (setup.seed = 1;; ++setup.seed) {
    Losses losses(setup.losses, 2, setup.seed);
    if (losses.NextUpSeconds(1) < losses.NextUpSeconds(0)) return setup;
  }
}

TEST(SimulationLossesTest, WhatNobodyHoldsIsReadFromTheDisk) {
  const SimulationSetup setup = WithoutTheSecond(1e-9);
  const SimulationResult result = Simulate(setup).value();
  const double disk = static_cast<double>(setup.problem.experts.BytesOf(1)) / 100;
  EXPECT_NEAR(result.latency.mean(), (2e-2 + 1e-5) + 2 * (1e-3 + 1e-4) + disk, 1e-12);
  EXPECT_EQ(result.losses, 1u);
  EXPECT_EQ(result.servers[0].local, 1u);
  EXPECT_EQ(result.servers[0].loaded, 1u);
  EXPECT_EQ(result.unanswered_calls, 0u);
}

TEST(SimulationLossesTest, ACallerIsPatientForAsLongAsItsDiskWouldTake) {
  const SimulationSetup setup = WithoutTheSecond(1e5);
  const SimulationResult result = Simulate(setup).value();
  const double disk = static_cast<double>(setup.problem.experts.BytesOf(1)) / 100;
  ASSERT_GT(disk, 1e-3 + 1e-4);
  EXPECT_NEAR(result.latency.mean(), (2e-2 + 1e-5) + disk + disk + (1e-3 + 1e-4), 1e-12);
  EXPECT_EQ(result.unanswered_calls, 1u);
  EXPECT_EQ(result.servers[0].loaded, 0u);
}

TEST(SimulationLossesTest, EveryPromptIsAnsweredWhateverIsLost) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulationSetup setup = SmallCluster(seed);
    setup.migration.interval_s = 0;
    const SimulationResult calm = Simulate(setup).value();
    setup.losses = {.mean_up_seconds = 20, .away_seconds = 15, .notice_seconds = 2};
    const SimulationResult result = Simulate(setup).value();
    EXPECT_EQ(result.latency.count(), setup.workload.prompts);
    EXPECT_GT(result.losses, 20u);
    EXPECT_GT(result.begun_again, 0u);
    EXPECT_GT(result.unanswered_calls, 0u);
    EXPECT_GT(result.servers[0].loaded, 0u);
    EXPECT_GT(result.latency.mean(), calm.latency.mean());
    EXPECT_EQ(calm.losses + calm.begun_again + calm.unanswered_calls, 0u);
    EXPECT_EQ(Simulate(setup).value().latency.mean(), result.latency.mean());
  }
}

TEST(SimulationLossesTest, ServersThatWorkAloneAreLostToo) {
  SimulationSetup setup = SmallCluster(3);
  setup.migration.interval_s = 0;
  setup.losses = {.mean_up_seconds = 20, .away_seconds = 15, .notice_seconds = 2};
  for (const Serving serving : {Serving::kAlone, Serving::kAloneRedirected}) {
    setup.serving = serving;
    const SimulationResult result = Simulate(setup).value();
    EXPECT_EQ(result.latency.count(), setup.workload.prompts);
    EXPECT_GT(result.begun_again, 0u);
    EXPECT_EQ(result.unanswered_calls, 0u);
  }
}

TEST(SimulationLossesTest, WhatCannotBeIsRefused) {
  SimulationSetup setup = SmallCluster(1);
  setup.losses.mean_up_seconds = 10;
  EXPECT_THAT(Validate(setup).message(), HasSubstr("losses and migration together"));
  setup.migration.interval_s = 0;
  EXPECT_TRUE(Validate(setup).ok());
  setup.losses.away_seconds = setup.losses.notice_seconds;
  EXPECT_THAT(Validate(setup).message(), HasSubstr("back after they were noticed"));
  setup.losses = {.mean_up_seconds = -1};
  EXPECT_THAT(Validate(setup).message(), HasSubstr("lost after -1 s"));
}

}  // namespace
}  // namespace troupe
