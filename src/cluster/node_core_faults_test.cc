// Thousands of clusters whose links, nodes and store fail in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/sanitized.h"
#include "cluster/node_core_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::IsEmpty;

constexpr Nanos kFaultSecond = SimulatedNodes::kSecond;

// Links break, nodes die and come back in any order; when it is over, all is well again, and at no
// time does a node hold more than it may, but for the one that it swaps, or take up an older plan.
TEST(NodeCoreSeeds, TheClusterIsWellAgainAfterAnyFaults) {
  const std::uint64_t first = TestSeed();
  for (std::uint64_t seed = first; seed < first + TestCases(kSanitized ? 150 : 10'000); ++seed) {
    SCOPED_TRACE(seed);
    const bool has_store = seed % 2 == 0;
    SimulatedNodes nodes(
        {.nodes = 2 + seed % 3, .most_held = 5, .seed = seed, .has_store = has_store});
    std::map<std::size_t, std::uint64_t> epochs;
    FakeKvState backup = nodes.store().state();
    for (int step = 0; step < 25; ++step) {
      const std::size_t any = nodes.rng().Below(nodes.size());
      switch (nodes.rng().Below(has_store ? 11 : 6)) {
        case 0:
          nodes.CutAny();
          break;
        case 1:
          if (nodes.core(any)) nodes.Kill(any), epochs.erase(any);
          break;
        case 2:
          if (!nodes.core(any)) nodes.Start(any);
          break;
        case 3:
          nodes.Mend();
          break;
        case 6:
          nodes.store().Stop();
          break;
        case 7:
          nodes.store().Start();
          break;
        case 8:
          backup = nodes.store().state();
          break;
        case 9:
          nodes.store().Stop();
          nodes.store().Restore(backup);
          nodes.store().Start();
          break;
        case 10:
          nodes.store().set_loss(0.2 * nodes.rng().Uniform());
          break;
        default:
          nodes.Run(static_cast<Nanos>(nodes.rng().Below(4000)) * SimulatedNodes::kMs);
      }
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes.core(i)) continue;
        ASSERT_LE(CountOf(nodes.held(i)), 5u + HoldingFacts::kSwapSlots);
        if (!nodes.core(i)->plan()) continue;
        ASSERT_GE(nodes.core(i)->plan()->epoch, epochs[i]);
        epochs[i] = nodes.core(i)->plan()->epoch;
      }
    }
    nodes.store().set_loss(0);
    nodes.store().Start();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes.core(i)) nodes.Start(i);
    }
    for (int i = 0; i < (has_store ? 20 : 5); ++i) {
      nodes.Run(5 * kFaultSecond);
      nodes.Mend();
    }
    nodes.Run(40 * kFaultSecond);
    ExpectWell(nodes);
    if (has_store) (void)LeaderOf(nodes);
    EXPECT_THAT(nodes.failed(), IsEmpty());
    if (HasFailure()) {
      for (const std::string& line : nodes.said()) ADD_FAILURE() << line;
      return;
    }
  }
}

}  // namespace
}  // namespace troupe
