// Many virtual clusters, a seed each: in none a rule is broken, and a full run of them reaches all
// that it is meant to reach. A seed that fails is lived once more, with its timeline.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "base/sanitized.h"
#include "cluster/virtual_cluster_for_test.h"
#include "testing/test_seed.h"

namespace troupe {

inline std::string TimelineOf(VirtualShape shape) {
  shape.keeps_lines = true;
  VirtualCluster again(shape);
  (void)again.Live();
  return again.world().timeline.text();
}

inline constexpr std::size_t kFullRun = 5'000;
inline constexpr std::size_t kSanitizedRun = 100;  // which takes as long

inline void LiveThroughSeeds(bool has_store, const std::vector<std::string>& events) {
  const std::uint64_t first = TestSeed();
  const std::size_t seeds = TestCases(kSanitized ? kSanitizedRun : kFullRun);
  VirtualEvents all;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const VirtualShape shape = VirtualShapeOf(seed, has_store);
    VirtualCluster cluster(shape);
    const std::string broken = cluster.Live();
    for (const auto& [what, times] : cluster.world().events.counts) all.Count(what, times);
    if (broken.empty()) continue;
    const std::string timeline = TimelineOf(shape);
    constexpr std::size_t kShown = 20'000;
    ADD_FAILURE() << "TROUPE_SEED=" << seed << " TROUPE_CASES=1: " << broken << "\n"
                  << timeline.substr(timeline.size() - std::min(kShown, timeline.size()));
    return;
  }
  for (const auto& [what, times] : all.counts) std::cout << what << ": " << times << "\n";
  if (seeds < kFullRun) return;  // few seeds need not reach all
  for (const std::string& what : events) EXPECT_GT(all.counts[what], 0u) << what;
}

}  // namespace troupe
