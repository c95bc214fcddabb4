// What a lone server's devices keep, and what that saves.
#include "sim/offload_work.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "placement/problems_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Token t chooses expert t of the one layer; a pass of one token asks for one expert.
RoutingTrace OneEach(std::uint16_t experts) {
  RoutingTrace trace{
      .layers = 1, .experts = experts, .top_k = 1, .tokens = experts, .sequence_starts = {0}};
  for (std::uint16_t e = 0; e < experts; ++e) trace.ids.push_back(e);
  return trace;
}

PlacementProblem OneServer(std::uint64_t memory, std::uint32_t experts) {
  return SmallProblem({memory}, {{std::vector<double>(experts, 1)}});
}

TEST(OffloadWork, KeepsTheMostRecentlyUsedAndLoadsTheRest) {
  const PlacementProblem problem = OneServer(2, 3);
  OffloadWork work(problem, {.expert = {1e-3, 1e-4}});
  const RoutingTrace trace = OneEach(3);
  const auto loads = [&](std::uint32_t token) {
    const OffloadWork::Layer& layer = work.Divide(trace, token, 1, 0, 0);
    EXPECT_EQ(layer.hits + layer.misses, 1u);
    EXPECT_NEAR(layer.jobs.at(0).seconds, 1.1e-3 + (layer.misses > 0 ? 0.1 : 0), 1e-12);
    return layer.misses > 0;
  };
  EXPECT_TRUE(loads(0));
  EXPECT_TRUE(loads(1));
  EXPECT_FALSE(loads(0));
  EXPECT_TRUE(loads(2));  // in the place of 1
  EXPECT_FALSE(loads(0));
  EXPECT_TRUE(loads(1));
}

TEST(OffloadWork, ADeviceWithoutRoomForAnExpertLoadsEachTime) {
  PlacementProblem problem = OneServer(0, 2);
  problem.servers[0].devices.push_back({.memory = 1, .load_bytes_per_second = 10});
  OffloadWork work(problem, {});
  const RoutingTrace trace = OneEach(2);  // 0 is the first device's, 1 the second's
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(work.Divide(trace, 0, 1, 0, 0).misses, 1u);
    EXPECT_EQ(work.Divide(trace, 1, 1, 0, 0).misses, i == 0 ? 1u : 0u);
  }
}

TEST(OffloadWork, SlotsAreOfTheLargestExpertsSizeAndLoadsOfTheirOwn) {
  PlacementProblem problem = OneServer(7, 3);
  problem.experts = ExpertTable({{1_B, 3_B, 1_B}});
  OffloadWork work(problem, {});
  const RoutingTrace trace = OneEach(3);
  EXPECT_NEAR(work.Divide(trace, 0, 1, 0, 0).jobs.at(0).seconds, 0.1, 1e-12);
  EXPECT_NEAR(work.Divide(trace, 1, 1, 0, 0).jobs.at(0).seconds, 0.3, 1e-12);
  EXPECT_EQ(work.Divide(trace, 2, 1, 0, 0).misses, 1u);
  EXPECT_EQ(work.Divide(trace, 0, 1, 0, 0).misses, 1u);  // two slots: it had to go
}

TEST(OffloadWork, MissesWhatAListOfTheMostRecentlyUsedMisses) {
  Rng rng(TestSeed());
  for (int round = 0; round < 20; ++round) {
    const auto experts = static_cast<std::uint16_t>(2 + rng.Below(10));
    const std::uint64_t room = 1 + rng.Below(experts);
    const PlacementProblem problem = OneServer(room, experts);
    OffloadWork work(problem, {});
    const RoutingTrace trace = OneEach(experts);
    std::vector<std::uint32_t> kept;  // the most recently used first
    for (int i = 0; i < 100; ++i) {
      const auto first = static_cast<std::uint32_t>(rng.Below(experts));
      const auto tokens = static_cast<std::uint32_t>(1 + rng.Below(experts - first));
      std::uint64_t misses = 0;
      for (std::uint32_t e = first; e < first + tokens; ++e) {
        misses += std::erase(kept, e) == 0 ? 1 : 0;
        kept.insert(kept.begin(), e);
        kept.resize(std::min<std::size_t>(kept.size(), room));
      }
      ASSERT_EQ(work.Divide(trace, first, tokens, 0, 0).misses, misses);
    }
  }
}

}  // namespace
}  // namespace troupe
