#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/expert_work.h"
#include "sim/link_pool.h"
#include "sim/scenario.h"
#include "sim/setups_for_test.h"
#include "sim/timeline.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Two layers of two experts; a token takes both of each layer. Every cost is another decimal.
SimulationSetup TwoExperts(const std::vector<std::uint64_t>& slots) {
  SimulationSetup setup;
  setup.problem =
      SmallProblem(slots, std::vector(slots.size(), std::vector(2, std::vector<double>(2, 1))));
  setup.problem.experts_per_token = 2;
  setup.problem.links.usual = {.latency_seconds = 0.01, .bytes_per_second = 1e5};
  setup.costs = {.expert = {.base = 1e-3, .each = 1e-4},
                 .dense = {.base = 2e-2, .each = 1e-5},
                 .call = {.base = 5e-3, .each = 1e-6},
                 .bytes_per_token = 100};
  setup.traces = {{.layers = 2,
                   .experts = 2,
                   .top_k = 2,
                   .tokens = 5,
                   .ids = std::vector<std::uint16_t>{0, 1, 1, 0, 0, 1, 0, 1, 0, 1,
                                                     1, 0, 1, 0, 0, 1, 0, 1, 0, 1},
                   .sequence_starts = {0}}};
  setup.workload.users.resize(slots.size());
  setup.workload.users[0].phases = {{.mean_interval_s = 1}};
  setup.workload.prompts = 1;
  return setup;
}

TEST(SimulationTest, ASingleServerTakesTheSumOfItsParts) {
  SimulationSetup setup = TwoExperts({4});
  setup.placement = {{{{0, 1, 2, 3}}}};
  setup.workload.output_tokens = 3;
  const SimulationResult result = Simulate(setup).value();
  // Input of five tokens, then two single ones; the device does both experts one after the other.
  const double input = 2 * (2e-2 + 5e-5 + 2 * (1e-3 + 5e-4));
  const double token = 2 * (2e-2 + 1e-5 + 2 * (1e-3 + 1e-4));
  EXPECT_NEAR(result.latency.mean(), input + 2 * token, 1e-12);
  EXPECT_EQ(result.servers[0].local, 2u * 2 * 7);
  EXPECT_EQ(result.LocalRatio(), 1);
  EXPECT_EQ(result.servers[0].bytes_sent, 0);
}

TEST(SimulationTest, ASecondDeviceRunsItsExpertsAtTheSameTime) {
  SimulationSetup setup = TwoExperts({0});
  setup.problem.servers[0].devices = {{.memory = 2, .speed = 1, .load_bytes_per_second = 1},
                                      {.memory = 2, .speed = 4, .load_bytes_per_second = 1}};
  setup.placement = {{{{0, 2}, {1, 3}}}};
  const SimulationResult result = Simulate(setup).value();
  EXPECT_NEAR(result.latency.mean(), 2 * (2e-2 + 5e-5 + (1e-3 + 5e-4)), 1e-12);
  EXPECT_NEAR(result.servers[0].busy_seconds, 2 * (2e-2 + 5e-5 + 1.25 * (1e-3 + 5e-4)), 1e-12);
}

TEST(SimulationTest, ARemoteExpertPaysForTheLinkBothWays) {
  SimulationSetup setup = TwoExperts({2, 2});
  setup.placement = {{{{0, 2}}, {{1, 3}}}};
  const SimulationResult result = Simulate(setup).value();
  // Five tokens of 100 bytes there, five results back; handling of all 1000 bytes; meanwhile the
  // local expert is done long before.
  const double call = 2 * (0.01 + 500 / 1e5) + 5e-3 + 1000e-6 + (1e-3 + 5e-4);
  EXPECT_NEAR(result.latency.mean(), 2 * (2e-2 + 5e-5 + call), 1e-12);
  EXPECT_EQ(result.servers[0].local, 10u);
  EXPECT_EQ(result.servers[0].remote, 10u);
  EXPECT_EQ(result.servers[0].bytes_sent, 1000);
  EXPECT_EQ(result.servers[1].bytes_sent, 1000);
  // The question's link is free again when the answer needs one.
  EXPECT_EQ(result.most_links, 1u);
}

TEST(SimulationTest, ACallCarriesATokenOnceAndEachResult) {
  SimulationSetup setup = TwoExperts({0, 4});
  setup.placement = {{{{}}, {{0, 1, 2, 3}}}};
  const SimulationResult result = Simulate(setup).value();
  const double call = 2 * 0.01 + 500 / 1e5 + 1000 / 1e5 + 5e-3 + 1500e-6 + 2 * (1e-3 + 5e-4);
  EXPECT_NEAR(result.latency.mean(), 2 * (2e-2 + 5e-5 + call), 1e-12);
}

TEST(SimulationTest, AnAnswerMayBeLargerThanWhatWasAsked) {
  SimulationSetup setup = TwoExperts({0, 4});
  setup.placement = {{{{}}, {{0, 1, 2, 3}}}};
  setup.costs.bytes_per_answer = 400;
  const SimulationResult result = Simulate(setup).value();
  const double call = 2 * 0.01 + 500 / 1e5 + 4000 / 1e5 + 5e-3 + 4500e-6 + 2 * (1e-3 + 5e-4);
  EXPECT_NEAR(result.latency.mean(), 2 * (2e-2 + 5e-5 + call), 1e-12);
}

TEST(SimulationTest, CallersOfOneHostShareItsLinkOnlyIfTheyHaveTo) {
  // Servers 1 and 2 ask server 0 at the same moment; their questions take links of their own, the
  // answers one for each pair, or server 0's one.
  const auto latency = [](LinkSharing sharing) {
    SimulationSetup setup = TwoExperts({4, 0, 0});
    setup.placement = {{{{0, 1, 2, 3}}, {{}}, {{}}}};
    setup.costs.expert = setup.costs.call = {};
    setup.sharing = sharing;
    for (std::uint32_t n = 0; n < 3; ++n) {
      setup.workload.users[n] = {.phases = {{}}};
      if (n > 0) setup.workload.users[n].recorded = {{.seconds = 1, .input_tokens = 5}};
      if (n == 0) setup.workload.users[n].recorded = {{.seconds = 99, .input_tokens = 1}};
    }
    setup.workload.prompts = 2;
    return Simulate(setup)->latency.mean();
  };
  const double dense = 2 * (2e-2 + 5e-5), wire = 2 * (2 * 0.01 + 500 / 1e5);
  EXPECT_NEAR(latency(LinkSharing::kPair), dense + wire + 2 * 1000 / 1e5, 1e-9);
  EXPECT_NEAR(latency(LinkSharing::kEgress), dense + wire + 2 * 2000 / 1e5, 1e-9);
}

TEST(SimulationTest, WhatAServerGetsMayShareALinkToo) {
  // Server 0 asks both others for an expert of the same layer at once: questions leave through one
  // link, and answers come through one, or each by the link of who sends it.
  const auto latency = [](bool shares_ingress) {
    SimulationSetup setup = TwoExperts({0, 2, 2});
    setup.placement = {{{{}}, {{0, 2}}, {{1, 3}}}};
    setup.costs.expert = setup.costs.call = {};
    setup.sharing = LinkSharing::kEgress;
    setup.shares_ingress = shares_ingress;
    setup.workload.users.resize(3);
    return Simulate(setup)->latency.mean();
  };
  const double dense = 2 * (2e-2 + 5e-5), questions = 2 * (0.01 + 1000 / 1e5);
  EXPECT_NEAR(latency(false), dense + questions + 2 * (0.01 + 500 / 1e5), 1e-9);
  EXPECT_NEAR(latency(true), dense + questions + 2 * (0.01 + 1000 / 1e5), 1e-9);
}

TEST(SimulationTest, PromptsWaitForTheirTurnAtTheServer) {
  SimulationSetup setup = TwoExperts({4});
  setup.placement = {{{{0, 1, 2, 3}}}};
  setup.workload.users[0].recorded = {{.seconds = 0, .input_tokens = 1},
                                      {.seconds = 0, .input_tokens = 1}};
  setup.workload.prompts = 2;
  const double alone = 2 * (2e-2 + 1e-5 + 2 * (1e-3 + 1e-4));
  SimulationResult result = Simulate(setup).value();
  EXPECT_NEAR(result.latency.mean(), 1.5 * alone, 1e-12);
  EXPECT_NEAR(result.servers[0].wait.mean(), 0.5 * alone, 1e-12);
  setup.prompts_at_once = 2;
  result = Simulate(setup).value();
  EXPECT_EQ(result.servers[0].wait.mean(), 0);
  EXPECT_GT(result.latency.mean(), 1.4 * alone) << "they still share the device";
}

TEST(SimulationTest, AServerAloneLoadsWhatItLacksBeforeItComputes) {
  // Room for three of four experts of one byte, loaded at 10 bytes/s. Two layers of two: the first
  // pass loads all four and drops the first; the second then misses one after the other.
  SimulationSetup setup = TwoExperts({3, 1});
  setup.placement = {{{{0, 1, 2}}, {{3}}}};
  setup.serving = Serving::kAlone;
  setup.workload.output_tokens = 2;
  const SimulationResult result = Simulate(setup).value();
  const double input = 2 * (2e-2 + 5e-5 + 2 * (0.1 + 1e-3 + 5e-4));
  const double token = 2 * (2e-2 + 1e-5 + 2 * (0.1 + 1e-3 + 1e-4));
  EXPECT_NEAR(result.latency.mean(), input + token, 1e-12);
  EXPECT_EQ(result.servers[0].loaded, 4u * 6);
  EXPECT_EQ(result.servers[0].bytes_sent, 0);

  setup.problem.servers[0].devices[0].memory = 4;
  EXPECT_NEAR(Simulate(setup)->latency.mean(), input + token - 4 * 0.1, 1e-12)
      << "with room for all, the second pass loads nothing";
}

TEST(SimulationTest, RedirectedPromptsGoWhereTheFewestAre) {
  SimulationSetup setup = TwoExperts({4, 4});
  setup.placement = {{{{0, 1, 2, 3}}, {{}}}};
  setup.workload.users[1].phases = {{.mean_interval_s = 1e9}};
  setup.workload.users[0].recorded = {{.seconds = 0, .input_tokens = 1},
                                      {.seconds = 0, .input_tokens = 1}};
  setup.workload.prompts = 2;
  const double alone = 2 * (2e-2 + 1e-5 + 2 * (1e-3 + 1e-4)) + 4 * 0.1;
  setup.serving = Serving::kAloneRedirected;
  const SimulationResult result = Simulate(setup).value();
  EXPECT_NEAR(result.latency.greatest(), alone, 1e-12) << "the second is not behind the first";
  EXPECT_EQ(result.servers[0].latency.count(), 2u) << "both are of server 0's users";
  EXPECT_GT(result.servers[1].busy_seconds, 0);
}

TEST(SimulationTest, SameSeedSameBytes) {
  Scenario scenario{.name = "small", .method = "dancemoe"};
  const auto record = [&](std::uint64_t seed) {
    scenario.setup = SmallCluster(seed);
    return ToJson(scenario, Simulate(scenario.setup).value()).Dump();
  };
  const std::string first = record(5);
  EXPECT_EQ(first, record(5));
  EXPECT_NE(first, record(6));
}

TEST(SimulationTest, WhatUsersAskDoesNotDependOnHowTheyAreServed) {
  SimulationSetup setup = SmallCluster(3);
  setup.migration.interval_s = 0;
  const SimulationResult slow = Simulate(setup).value();
  setup.costs = {};
  setup.placement = MakeUniform(1)->Place(setup.problem).value();
  const SimulationResult fast = Simulate(setup).value();
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_EQ(slow.servers[n].latency.count(), fast.servers[n].latency.count());
    EXPECT_EQ(slow.servers[n].local + slow.servers[n].remote,
              fast.servers[n].local + fast.servers[n].remote);
  }
}

TEST(SimulationTest, MigrationFollowsAChangeOfTask) {
  SimulationSetup setup = SmallCluster(1);
  setup.workload.prompts = 2500;
  const SimulationResult with = Simulate(setup).value();
  setup.migration.interval_s = 0;
  const SimulationResult without = Simulate(setup).value();
  std::uint32_t adopted = 0;
  for (const MigrationRecord& record : with.migrations) {
    if (!record.decision.adopt) continue;
    ++adopted;
    EXPECT_GT(record.loads, 0u);
    EXPECT_GE(record.finished_seconds, record.seconds);
    EXPECT_GE(record.seconds, 400) << "until the change the placement is right";
  }
  EXPECT_GE(adopted, 1u);
  EXPECT_TRUE(without.migrations.empty());
  EXPECT_GT(with.LocalRatio(), without.LocalRatio() + 0.05);
  EXPECT_LT(with.latency.mean(), without.latency.mean());
}

TEST(SimulationTest, WhatIsInFlightDoesNotGrowWithTheNumberOfPrompts) {
  SimulationSetup setup = SmallCluster(2);
  setup.migration.interval_s = 0;
  const std::uint64_t few = Simulate(setup)->most_in_flight;
  setup.workload.prompts = 20'000;
  EXPECT_LE(Simulate(setup)->most_in_flight, 2 * few);
}

TEST(SimulationTest, PromptsThatWaitAreInFlightToo) {
  SimulationSetup setup = SingleQueue(1);
  setup.workload.prompts = 500;
  setup.workload.users[0].recorded.assign(500, RecordedRequest{});  // all at once
  EXPECT_GE(Simulate(setup)->most_in_flight, 499u);
}

// Server 0 has expert 0 of one layer and wants expert 1 (10 ms a call over the link and back), of
// which server 1 has a copy, as of expert 0; it has room for one. Loading takes 0.1 s.
SimulationSetup OneCallAway() {
  SimulationSetup setup;
  setup.problem = SmallProblem({1, 2}, {{{0, 1}}, {{0, 1}}});
  setup.problem.links.usual = {.latency_seconds = 0.005, .bytes_per_second = 1e9};
  setup.placement = {{{{0}}, {{0, 1}}}};
  setup.costs = {.dense = {.base = 1e-3}};
  setup.traces = {
      {.layers = 1, .experts = 2, .top_k = 1, .tokens = 1, .ids = {1}, .sequence_starts = {0}}};
  setup.workload.users = {{.phases = {{}}}, {.phases = {{}}}};
  setup.workload.users[1].recorded = {{.seconds = 1e6}};  // never
  return setup;
}

TEST(SimulationTest, MovesWhenTheCallsThatItSavesHaveCostMoreThanMoving) {
  // A move loads and drops: 0.2 s by Eq. 3, 20 calls. Prompts come every 0.1 s from 0.05 s on.
  const auto run = [](double interval_s) {
    SimulationSetup setup = OneCallAway();
    for (int i = 0; i < 40; ++i) {
      setup.workload.users[0].recorded.push_back({.seconds = 0.05 + 0.1 * i});
    }
    setup.workload.users[0].recorded.push_back({.seconds = 60});
    setup.workload.prompts = 41;
    setup.migration.interval_s = interval_s;
    return Simulate(setup).value();
  };
  const SimulationResult result = run(1.5);
  ASSERT_GE(result.migrations.size(), 2u);
  EXPECT_NEAR(result.migrations[0].decision.seconds_now, 15 * 0.01, 1e-6) << "15 calls of 10 ms";
  EXPECT_NEAR(result.migrations[0].decision.migration_seconds, 0.2, 1e-12);
  EXPECT_FALSE(result.migrations[0].decision.adopt);
  EXPECT_NEAR(result.migrations[1].decision.seconds_now, 30 * 0.01, 1e-6) << "they add up";
  EXPECT_TRUE(result.migrations[1].decision.adopt);
  EXPECT_NEAR(result.migrations[1].finished_seconds, 3.1, 1e-9);
  // From then on everything is at home, and what is counted began anew.
  EXPECT_EQ(result.servers[0].remote, 31u) << "one came while the expert was loaded";
  for (std::size_t i = 2; i < result.migrations.size(); ++i) {
    EXPECT_EQ(result.migrations[i].decision.seconds_now, 0);
    EXPECT_FALSE(result.migrations[i].decision.adopt);
  }
}

// A move at 3 s, of one byte: 0.1 s into the device, and before that 0.4 s and 5 ms on the link.
TEST(SimulationTest, LoadsOfAMoveTakeTheTimeOfDevicesAndLinksFromServing) {
  const auto run = [](MigrationLoads loads) {
    SimulationSetup setup = OneCallAway();
    setup.problem.links.usual.bytes_per_second = 2.5;
    for (int i = 0; i < 30; ++i) {
      setup.workload.users[0].recorded.push_back({.seconds = 0.05 + 0.1 * i});
    }
    setup.workload.users[0].recorded.push_back({.seconds = 3.05});
    setup.workload.users[0].recorded.push_back({.seconds = 60});
    setup.workload.prompts = 32;
    setup.migration.interval_s = 1.5;
    setup.migration.loads = loads;
    return Simulate(setup).value();
  };
  const SimulationResult beside = run(MigrationLoads::kBeside);
  const SimulationResult devices = run(MigrationLoads::kDevices);
  const SimulationResult links = run(MigrationLoads::kLinks);
  for (const SimulationResult* result : {&beside, &devices, &links}) {
    ASSERT_GE(result->migrations.size(), 2u);
    ASSERT_TRUE(result->migrations[1].decision.adopt);
    EXPECT_NEAR(result->migrations[1].loading_seconds, 0.1, 1e-9);
  }
  EXPECT_NEAR(beside.migrations[1].finished_seconds, 3.1, 1e-9);
  EXPECT_EQ(beside.servers[0].remote, 31u);
  EXPECT_NEAR(beside.servers[0].latency.greatest(), 0.011, 1e-3);
  // The prompt of 3.05 s waits for the device, and then finds the expert at home.
  EXPECT_NEAR(devices.migrations[1].finished_seconds, 3.1, 1e-9);
  EXPECT_EQ(devices.migrations[1].fetching_seconds, 0);
  EXPECT_EQ(devices.servers[0].remote, 30u);
  EXPECT_NEAR(devices.servers[0].latency.greatest(), 0.051, 1e-3);
  EXPECT_NEAR(devices.servers[0].busy_seconds - beside.servers[0].busy_seconds, 0.1, 1e-9);
  // Nobody's calls have bytes here, so the link is the move's alone.
  EXPECT_NEAR(links.migrations[1].fetching_seconds, 0.405, 1e-9);
  EXPECT_NEAR(links.migrations[1].finished_seconds, 3.505, 1e-9);
  EXPECT_EQ(links.servers[1].bytes_sent - beside.servers[1].bytes_sent, 1);
  EXPECT_EQ(links.servers[0].remote, 31u);
}

TEST(SimulationTest, WhatWasCountedBeforeAMoveDoesNotHoldUpTheNext) {
  // 35 prompts want expert 1, then 45 expert 0: more, but not enough more to pay for a move if the
  // first 30, which paid for the one before, still counted.
  SimulationSetup setup = OneCallAway();
  setup.traces.push_back(setup.traces[0]);
  setup.traces[1].ids = {0};
  setup.workload.users[0].phases.push_back({.from_seconds = 50, .trace = 1});
  for (int i = 0; i < 80; ++i) {
    const double begins = i < 35 ? 0.05 : 60.05 - 3.5;
    setup.workload.users[0].recorded.push_back({.seconds = begins + 0.1 * i});
  }
  setup.workload.prompts = 80;
  setup.migration.interval_s = 1.5;
  const SimulationResult result = Simulate(setup).value();
  std::vector<double> moved;
  for (const MigrationRecord& record : result.migrations) {
    if (record.decision.adopt) moved.push_back(record.seconds);
  }
  ASSERT_EQ(moved.size(), 2u);
  EXPECT_EQ(moved[0], 3);
  EXPECT_EQ(moved[1], 63);
}

TEST(ExpertMapTest, CallersFollowAnExpertThatMoves) {
  const PlacementProblem problem = SmallProblem({1, 2, 2}, {{{1, 1}}, {{1, 1}}, {{1, 1}}});
  ExpertMap map(problem, {{{{0}}, {{1}}, {{}}}});
  EXPECT_EQ(map.routes().HostOf(0, 1), 1u);
  map.Load(2, 0, 1);
  EXPECT_EQ(map.routes().HostOf(2, 1), 2u) << "what has come is used at home";
  map.Drop(1, 0, 1);
  EXPECT_EQ(map.routes().HostOf(0, 1), 2u);
  EXPECT_EQ(map.routes().HostOf(1, 1), 2u);
}

TEST(LinkPoolTest, PairsThatAreIdleTakeNoMemory) {
  const LinkTable table{.usual = {.latency_seconds = 0, .bytes_per_second = 10}};
  LinkPool links(table, LinkSharing::kPair, 1000);
  std::uint32_t greatest = 0;
  for (std::uint32_t to = 1; to < 1000; ++to) {
    const std::uint32_t id = links.Acquire(0, to);
    greatest = std::max(greatest, id);
    links[id].Start(to, 10, 7);
    EXPECT_EQ(links.Acquire(0, to), id) << "both transfers share it";
    EXPECT_EQ(links[id].End(to + 1), 7u);
    links.ReleaseIfIdle(id);
  }
  EXPECT_EQ(greatest, 0u);
}

TEST(TimelineTest, ManySamplesBecomeFewerLongOnesAndLoseNothing) {
  Timeline timeline(1);
  const auto seconds = 5 * Timeline::kMostSamples;
  for (std::size_t second = 0; second < seconds; ++second) {
    TimelineSample& sample = timeline.At(static_cast<double>(second));
    ++sample.answered;
    sample.local += 2;
    sample.remote += 3;
    sample.latency_sum += 4;
  }
  const std::vector<TimelineSample> samples = std::move(timeline).Take();
  ASSERT_EQ(samples.size(), Timeline::kMostSamples * 5 / 8);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ASSERT_EQ(samples[i].seconds, 8.0 * static_cast<double>(i));
    ASSERT_EQ(samples[i].answered, 8u);
    ASSERT_EQ(samples[i].local, 16u);
    ASSERT_EQ(samples[i].remote, 24u);
    ASSERT_EQ(samples[i].latency_sum, 32);
  }
}

TEST(SimulationTest, RefusesWhatDoesNotFitTogether) {
  const auto message = [](auto spoil) {
    SimulationSetup setup = SmallCluster(1);
    spoil(setup);
    return Validate(setup).message();
  };
  EXPECT_THAT(message([](auto& s) { s.workload.users.pop_back(); }),
              HasSubstr("users of 2 servers"));
  EXPECT_THAT(message([](auto& s) { s.workload.users[0].phases[0].trace = 3; }),
              HasSubstr("users of trace 3"));
  EXPECT_THAT(message([](auto& s) { s.traces[1].ids.pop_back(); }), HasSubstr("choices, expected"));
  EXPECT_THAT(message([](auto& s) { s.traces[1].ids[4] = 12; }), HasSubstr("expert 12"));
  EXPECT_THAT(message([](auto& s) { s.prompts_at_once = 0; }), HasSubstr("must be positive"));
  EXPECT_THAT(message([](auto& s) {
                s.sharing = LinkSharing::kEgress;
                s.problem.links.pairs[{0, 1}] = {.latency_seconds = 0, .bytes_per_second = 7};
              }),
              HasSubstr("link from server 0 to server 1: 7 bytes/s, but all that a server sends"));
  EXPECT_THAT(message([](auto& s) { s.serving = Serving::kAlone; }),
              HasSubstr("migration every 50 s, expected zero or more, and none where servers"));
  EXPECT_THAT(message([](auto& s) { s.migration.interval_s = -1; }), HasSubstr("every -1 s"));
  EXPECT_EQ(message([](auto&) {}), "");
}

}  // namespace
}  // namespace troupe
