// Servers with disks of their own, by hand: who answers a miss, and what that takes.
#include "sim/own_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/setups_for_test.h"
#include "sim/simulation.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr double kDense = 2e-2 + 1e-5, kExpert = 1e-3 + 1e-4;  // of one token
constexpr double kRoundTrip = 2 * 0.01 + 5e-3;                 // as it is known before any call

// One layer of two experts of a byte, both of which a token takes. Server 0's users ask one prompt
// of one token; server 1 holds both experts, 0 holds none.
SimulationSetup OneAsker(const OwnDisk& disk) {
  SimulationSetup setup;
  setup.problem = SmallProblem({0, 2}, std::vector(2, std::vector(1, std::vector<double>(2, 1))));
  setup.problem.experts_per_token = 2;
  setup.problem.links.usual = {.latency_seconds = 0.01, .bytes_per_second = 1e5};
  setup.placement = {{{{}}, {{0, 1}}}};
  setup.costs = {.expert = {.base = 1e-3, .each = 1e-4},
                 .dense = {.base = 2e-2, .each = 1e-5},
                 .call = {.base = 5e-3, .each = 1e-6},
                 .bytes_per_token = 100};
  setup.traces = {{.layers = 1,
                   .experts = 2,
                   .top_k = 2,
                   .tokens = 1,
                   .ids = std::vector<std::uint16_t>{0, 1},
                   .sequence_starts = {0}}};
  setup.workload.users.resize(2);
  setup.workload.users[0].phases = {{.mean_interval_s = 1}};
  setup.workload.prompts = 1;
  setup.disks = std::vector(2, disk);
  return setup;
}

// How long a call for `experts` experts takes, for one token.
double CallSeconds(int experts) {
  const double bytes = 100 + 100 * experts;
  return 2 * 0.01 + bytes / 1e5 + 5e-3 + 1e-6 * bytes + experts * kExpert;
}

TEST(OwnDiskTest, AMissGoesToTheDiskWhereTheLinkIsSlow) {
  const SimulationResult result =
      Simulate(OneAsker({.bytes_per_second = 1000, .free_slots = 2})).value();
  // The first is computed while the second is read, which ends before that.
  EXPECT_NEAR(result.latency.mean(), kDense + 1e-3 + 2 * kExpert, 1e-12);
  EXPECT_EQ(result.servers[0].loaded, 2u);
  EXPECT_EQ(result.servers[0].remote, 0u);
  EXPECT_EQ(result.servers[0].disk->loads, 2u);
  EXPECT_NEAR(result.servers[0].disk->busy_seconds, 2e-3, 1e-12);
}

TEST(OwnDiskTest, ALoadThatFindsTheDiskIdleWaitsOutItsLatency) {
  const SimulationResult result =
      Simulate(OneAsker({.bytes_per_second = 1000, .latency_seconds = 2e-3, .free_slots = 2}))
          .value();
  EXPECT_NEAR(result.latency.mean(), kDense + 2e-3 + 1e-3 + 2 * kExpert, 1e-12);
}

TEST(OwnDiskTest, AMissGoesToThePeerWhereTheDiskIsSlow) {
  const SimulationResult result =
      Simulate(OneAsker({.bytes_per_second = 1, .free_slots = 2})).value();
  EXPECT_NEAR(result.latency.mean(), kDense + CallSeconds(2), 1e-12);
  EXPECT_EQ(result.servers[0].remote, 2u);
  EXPECT_EQ(result.servers[0].loaded, 0u);
  EXPECT_EQ(result.servers[0].disk->loads, 0u);
  EXPECT_EQ(result.servers[0].disk->late_calls, 0u);
}

TEST(OwnDiskTest, BothLanesAreUsedWhereBothHelp) {
  // One load takes 20 ms and two 40, a call is expected to take 25.
  const SimulationResult result =
      Simulate(OneAsker({.bytes_per_second = 50, .free_slots = 2})).value();
  EXPECT_NEAR(result.latency.mean(), kDense + CallSeconds(1), 1e-12);
  EXPECT_EQ(result.servers[0].remote, 1u);
  EXPECT_EQ(result.servers[0].loaded, 1u);
}

TEST(OwnDiskTest, WithoutASlotNothingIsRead) {
  const SimulationResult result =
      Simulate(OneAsker({.bytes_per_second = 1e9, .free_slots = 0})).value();
  EXPECT_NEAR(result.latency.mean(), kDense + CallSeconds(2), 1e-12);
  EXPECT_EQ(result.servers[0].disk->loads, 0u);
}

TEST(OwnDiskTest, WhatWasReadStaysInFreeSlots) {
  const auto disk_with = [](std::uint32_t slots) {
    SimulationSetup setup = OneAsker({.bytes_per_second = 1000, .free_slots = slots});
    setup.workload.output_tokens = 3;
    return *Simulate(setup)->servers[0].disk;
  };
  EXPECT_EQ(disk_with(2).loads, 2u);
  EXPECT_EQ(disk_with(2).slot_hits, 4u);
  // With one slot each pass finds the expert that came last, and reads the other in its place.
  EXPECT_EQ(disk_with(1).slot_hits, 2u);
  EXPECT_EQ(disk_with(1).loads, 4u);
}

TEST(OwnDiskTest, TheDiskIsAskedInPlaceOfACallThatIsLate) {
  SimulationSetup setup = OneAsker({.bytes_per_second = 10, .free_slots = 2});
  setup.problem.links.usual.bytes_per_second = 100;  // the question alone takes a second
  const SimulationResult result = Simulate(setup).value();
  // It is late after twice the time that was expected; then both are read.
  EXPECT_NEAR(result.latency.mean(), kDense + 2 * kRoundTrip + 2 * 0.1 + kExpert, 1e-9);
  EXPECT_EQ(result.servers[0].disk->late_calls, 1u);
  EXPECT_EQ(result.servers[0].disk->loads, 2u);
}

TEST(OwnDiskTest, ACallThatNobodyWaitsForIsNotComputed) {
  SimulationSetup setup = OneAsker({.bytes_per_second = 10, .free_slots = 2});
  setup.problem.links.usual.bytes_per_second = 100;
  setup.workload.output_tokens = 200;  // after the first all is in slots, and the question arrives
  const SimulationResult result = Simulate(setup).value();
  EXPECT_EQ(result.servers[0].disk->called_off, 1u);
  EXPECT_EQ(result.servers[1].busy_seconds, 0);
  EXPECT_EQ(result.servers[1].bytes_sent, 0);
}

TEST(OwnDiskTest, PeersAreKnownByWhatTheirAnswersTook) {
  // A load takes 30 ms. A call for both experts is expected to take 25 and takes 42.5; the next
  // plan knows that, and that one for a single expert takes 34.
  SimulationSetup setup = OneAsker({.bytes_per_second = 1 / 0.03, .free_slots = 1});
  setup.problem.links.usual.bytes_per_second = 2e4;
  setup.workload.output_tokens = 2;
  const SimulationResult result = Simulate(setup).value();
  EXPECT_EQ(result.servers[0].remote, 3u);
  EXPECT_EQ(result.servers[0].loaded, 1u);
  EXPECT_EQ(result.servers[0].disk->late_calls, 0u);
}

TEST(OwnDiskTest, SharingRestsWhereItHasNotPaid) {
  // Between two prompts the asker forgets how slow the link is, asks again, and reads all the same.
  SimulationSetup setup = OneAsker({.bytes_per_second = 1000, .free_slots = 1});
  setup.problem.links.usual.bytes_per_second = 100;
  setup.workload.prompts = 250;
  for (int i = 0; i < 250; ++i) {
    setup.workload.users[0].recorded.push_back({.seconds = 20.0 * i});
  }
  const DiskResult disk = *Simulate(setup)->servers[0].disk;
  EXPECT_GT(disk.late_calls, 100u);
  EXPECT_GT(disk.rested, 0u);
  EXPECT_LT(disk.late_calls + disk.rested, 251u);
}

TEST(OwnDiskTest, RequestsUnderWayShareAPass) {
  SimulationSetup setup = OneAsker({.bytes_per_second = 1000});
  setup.problem.servers[0].devices[0].memory = 2;
  setup.placement = {{{{0, 1}}, {{0, 1}}}};
  setup.workload.users[0].recorded = {{.seconds = 0, .output_tokens = 3},
                                      {.seconds = 0, .output_tokens = 3}};
  setup.workload.prompts = 2;
  setup.prompts_at_once = 2;
  const SimulationResult result = Simulate(setup).value();
  // The first one's input alone, two passes of both, the second one's last token alone.
  EXPECT_EQ(result.servers[0].disk->passes, 4u);
  EXPECT_EQ(result.servers[0].disk->parts, 6u);
  const double alone = kDense + 2 * kExpert, both = 2e-2 + 2e-5 + 2 * (1e-3 + 2e-4);
  EXPECT_NEAR(result.latency.greatest(), 2 * alone + 2 * both, 1e-12);
  EXPECT_NEAR(result.latency.mean(), (2 * (alone + 2 * both) + alone) / 2, 1e-12);
}

TEST(OwnDiskTest, WhatTheNextLayerWillChooseIsReadAhead) {
  SimulationSetup setup = OneAsker({.bytes_per_second = 100, .free_slots = 4});
  setup.problem = SmallProblem({0, 4}, std::vector(2, std::vector(2, std::vector<double>(2, 1))));
  setup.problem.experts_per_token = 2;
  setup.problem.links.usual = {.latency_seconds = 1, .bytes_per_second = 1e5};
  setup.placement = {{{{}}, {{0, 1, 2, 3}}}};
  setup.traces[0].layers = 2;
  setup.traces[0].ids = {0, 1, 0, 1};
  const SimulationResult without = Simulate(setup).value();
  setup.disks[0].reads_ahead = true;
  const SimulationResult with = Simulate(setup).value();
  EXPECT_EQ(without.servers[0].disk->ahead, 0u);
  EXPECT_EQ(with.servers[0].disk->ahead, 2u);
  EXPECT_EQ(with.servers[0].disk->loads, without.servers[0].disk->loads);
  EXPECT_LT(with.latency.mean(), without.latency.mean() - 0.015);
}

TEST(OwnDiskTest, AServerThatHoldsAllIsAsFastAsWithoutADisk) {
  SimulationSetup setup = SmallCluster(3);
  setup.migration.interval_s = 0;
  setup.problem.servers.resize(1);
  setup.problem.servers[0].devices = {{.memory = 48, .load_bytes_per_second = 10}};
  setup.workload.users.resize(1);
  setup.placement = MakeDanceMoe()->Place(setup.problem).value();
  setup.workload.prompts = 200;
  const SimulationResult without = Simulate(setup).value();
  setup.disks = {{.bytes_per_second = 10, .free_slots = 3, .reads_ahead = true}};
  const SimulationResult with = Simulate(setup).value();
  EXPECT_NEAR(with.latency.mean(), without.latency.mean(), 1e-9);
  EXPECT_EQ(with.servers[0].local, without.servers[0].local);
  EXPECT_EQ(with.servers[0].disk->loads, 0u);
  EXPECT_FALSE(without.servers[0].disk.has_value());
}

TEST(OwnDiskTest, ADiskThatIsNoUseChangesWhatIsLocalAndRemoteNotAtAll) {
  SimulationSetup setup = SmallCluster(3);
  setup.migration.interval_s = 0;
  setup.problem.servers[2].devices = {{.memory = 40, .load_bytes_per_second = 10}};
  setup.placement = MakeDanceMoe()->Place(setup.problem).value();
  const SimulationResult without = Simulate(setup).value();
  setup.disks = std::vector<OwnDisk>(3, {.bytes_per_second = 1e-3, .free_slots = 0});
  const SimulationResult with = Simulate(setup).value();
  EXPECT_EQ(with.latency.count(), 1000u);
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_EQ(with.servers[n].local, without.servers[n].local);
    EXPECT_EQ(with.servers[n].remote, without.servers[n].remote);
  }
}

TEST(OwnDiskTest, EveryPairIsAnsweredOnceWhateverTheSeed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulationSetup setup = SmallCluster(seed);
    setup.migration.interval_s = 0;
    setup.problem.servers[2].devices = {{.memory = 40, .load_bytes_per_second = 10}};
    setup.placement = MakeDanceMoe()->Place(setup.problem).value();
    setup.workload.prompts = 200;
    setup.prompts_at_once = 3;
    setup.problem.links.usual.bytes_per_second = 3e5;
    Rng rng(seed);
    for (int n = 0; n < 3; ++n) {
      setup.disks.push_back({.bytes_per_second = std::exp(8 * rng.Uniform()),
                             .latency_seconds = 1e-3 * rng.Uniform(),
                             .free_slots = static_cast<std::uint32_t>(rng.Below(6)),
                             .reads_ahead = rng.Below(2) == 1});
    }
    const SimulationResult result = Simulate(setup).value();
    ASSERT_EQ(result.latency.count(), 200u) << seed;
    std::uint64_t pairs = 0, without = 0;
    for (const ServerResult& server : result.servers) {
      pairs += server.local + server.remote + server.loaded;
    }
    setup.disks.clear();
    const SimulationResult alone = Simulate(setup).value();
    for (const ServerResult& server : alone.servers) {
      without += server.local + server.remote;
    }
    EXPECT_EQ(pairs, without) << seed;
  }
}

TEST(OwnDiskTest, WhatIsAskedOfALostServerComesFromTheDisk) {
  SimulationSetup setup = OneAsker({.bytes_per_second = 1, .free_slots = 2});  // seconds a load
  setup.losses = {.mean_up_seconds = 1e-9, .away_seconds = 1e6, .notice_seconds = 1e5};
  for (bool second_is_lost = false; !second_is_lost; ++setup.seed) {
    Losses losses(setup.losses, 2, setup.seed + 1);
    second_is_lost = losses.NextUpSeconds(1) < losses.NextUpSeconds(0);
  }
  const SimulationResult slow = Simulate(setup).value();
  EXPECT_EQ(slow.unanswered_calls, 1u);
  EXPECT_EQ(slow.servers[0].disk->late_calls, 1u);
  EXPECT_EQ(slow.servers[0].disk->loads, 2u);
  EXPECT_GT(slow.latency.mean(), 2);
  setup.losses.notice_seconds = 1e-9;
  const SimulationResult noticed = Simulate(setup).value();
  EXPECT_EQ(noticed.unanswered_calls, 0u);
  EXPECT_LT(noticed.latency.mean(), slow.latency.mean());
}

TEST(OwnDiskTest, EveryPromptIsAnsweredWhateverIsLost) {
  std::uint64_t again = 0, unanswered = 0, late = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulationSetup setup = SmallCluster(seed);
    setup.migration.interval_s = 0;
    setup.problem.servers[2].devices = {{.memory = 40, .load_bytes_per_second = 10}};
    setup.placement = MakeDanceMoe()->Place(setup.problem).value();
    setup.workload.prompts = 300;
    setup.prompts_at_once = 3;
    setup.losses = {.mean_up_seconds = 20, .away_seconds = 15, .notice_seconds = 2};
    Rng rng(seed);
    for (int n = 0; n < 3; ++n) {
      setup.disks.push_back(
          {.bytes_per_second = std::exp(8 * rng.Uniform()),
           .latency_seconds = 1e-3 * rng.Uniform(),
           .free_slots = setup.problem.experts_per_token + static_cast<std::uint32_t>(rng.Below(6)),
           .reads_ahead = rng.Below(2) == 1});
    }
    ASSERT_TRUE(Validate(setup).ok()) << Validate(setup).message();
    const SimulationResult result = Simulate(setup).value();
    EXPECT_EQ(result.latency.count(), 300u) << seed;
    EXPECT_GT(result.losses, 5u) << seed;
    EXPECT_EQ(Simulate(setup).value().latency.mean(), result.latency.mean()) << seed;
    again += result.begun_again;
    unanswered += result.unanswered_calls;
    for (const ServerResult& server : result.servers) late += server.disk->late_calls;
  }
  EXPECT_GT(again, 0u);
  EXPECT_GT(unanswered, 0u);
  EXPECT_GT(late, 0u);
}

TEST(OwnDiskTest, WhatCannotBeSimulatedIsRefusedWithItsReason) {
  const auto refusal = [](auto change) {
    SimulationSetup setup = OneAsker({.bytes_per_second = 1000});
    change(setup);
    return Validate(setup).message();
  };
  EXPECT_EQ(refusal([](SimulationSetup&) {}), "");
  EXPECT_THAT(refusal([](SimulationSetup& s) { s.disks.pop_back(); }),
              HasSubstr("disks of 1 servers, the problem has 2"));
  EXPECT_THAT(
      refusal([](SimulationSetup& s) { s.disks[1].bytes_per_second = 0; }),
      HasSubstr("server 's1' has a disk of 0 bytes/s after 0 s, expected a positive speed"));
  EXPECT_THAT(refusal([](SimulationSetup& s) { s.disks[0].policy = "score"; }),
              HasSubstr("under the policy 'score', expected one of lru, lfu, arc, echo"));
  EXPECT_THAT(refusal([](SimulationSetup& s) { s.migration.interval_s = 5; }),
              HasSubstr("which is not simulated"));
  EXPECT_THAT(refusal([](SimulationSetup& s) { s.losses.mean_up_seconds = 5; }),
              HasSubstr("server 's0' has 0 free slots, expected 2"));
  EXPECT_THAT(
      refusal([](SimulationSetup& s) {
        s.problem.servers[0].devices = {{.load_bytes_per_second = 1}, {.load_bytes_per_second = 1}};
        s.placement.experts[0] = {{}, {}};
      }),
      HasSubstr("server 's0' has a disk of its own and 2 devices, expected one"));
}

}  // namespace
}  // namespace troupe
