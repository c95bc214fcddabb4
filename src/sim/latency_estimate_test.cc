// The latency objective is an estimate; what it is for is to prefer placements that serve faster.
// Here the simulator, which queues each job and shares each link, has the last word.
#include <gtest/gtest.h>

#include "sim/scenario.h"
#include "sim/setups_for_test.h"

namespace troupe {
namespace {

// Servers of one device that share what they send; every third has users of the same task, and the
// tasks' prompts differ in length.
Scenario Cluster(std::uint32_t servers) {
  const std::string path = TROUPE_SOURCE_DIR "/tests/data/routing/scenario.json";
  Result<Scenario> scenario = LoadScenario(
      path, {.set = {fmt::format(R"(/servers=[{{"name": "s", "count": {}, "devices":
                                     [{{"memory": "1600MiB", "load_bytes_per_s": 12e9}}]}}])",
                                 servers),
                     R"(/links={"latency_s": 0.0003, "bytes_per_s": 12e6, "sharing": "egress"})",
                     R"(/users/2/phases=[{"trace": "intent", "mean_interval_s": 3}])",
                     "/migration=null", fmt::format("/prompts={}", 200 * servers)}});
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return *std::move(scenario);
}

double SimulatedSeconds(Scenario scenario, const char* method) {
  scenario.method = method;
  EXPECT_TRUE(PlaceExperts(scenario).ok());
  return Simulate(scenario.setup)->latency.mean();
}

TEST(LatencyEstimateTest, WhatTheSearchFindsServesFasterThanWhatItStartsFrom) {
  for (const std::uint32_t servers : {4u, 9u, 24u}) {
    const Scenario scenario = Cluster(servers);
    const double dancemoe = SimulatedSeconds(scenario, "dancemoe");
    const double optimum = SimulatedSeconds(scenario, "optimum");
    const double latency = SimulatedSeconds(scenario, "latency");
    EXPECT_LT(latency, dancemoe) << servers << " servers";
    EXPECT_LT(latency, optimum) << servers << " servers";
    RecordProperty(fmt::format("seconds_{}", servers),
                   fmt::format("{} {} {}", dancemoe, optimum, latency));
  }
}

}  // namespace
}  // namespace troupe
