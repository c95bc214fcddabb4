// A whole cluster that serves, from a seed: nodes ask and answer each other while plans move
// experts, links break, nodes die and disks fail.
#include "cluster/simulated_serving_for_test.h"

#include <gtest/gtest.h>

#include <map>

#include "testing/sanitized.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr Nanos kServingSecond = SimulatedNodes::kSecond;
constexpr std::uint32_t kMostHeld = 5;

// After each step: what was given was right, and given once (SimulatedServing says so), nobody
// holds more than it may, and no epoch falls.
TEST(SimulatedServingSeeds, EveryExpertIsGivenOnceAndRightWhateverHappens) {
  const std::uint64_t first = TestSeed();
  CallCounters calls;
  FetchCounters fetches;
  std::uint64_t answered = 0;
  for (std::uint64_t seed = first; seed < first + TestCases(kSanitized ? 150 : 10'000); ++seed) {
    SCOPED_TRACE(seed);
    const bool has_store = seed % 2 == 0;
    SimulatedNodes nodes(
        {.nodes = 2 + seed % 3, .most_held = kMostHeld, .seed = seed, .has_store = has_store});
    SimulatedServing serving(nodes);
    std::map<std::size_t, std::uint64_t> epochs;
    nodes.Run(8 * kServingSecond);
    for (int step = 0; step < 20; ++step) {
      const std::size_t any = nodes.rng().Below(nodes.size());
      switch (nodes.rng().Below(8)) {
        case 0:
          nodes.CutAny();
          break;
        case 1:
          if (!nodes.core(any)) break;
          nodes.Kill(any);
          serving.OnKilled(any);
          epochs.erase(any);
          break;
        case 2:
          if (!nodes.core(any)) nodes.Start(any);
          break;
        case 3:
          nodes.Mend();
          break;
        default:
          break;
      }
      for (std::size_t i = 0; i < nodes.size(); ++i) serving.AskLayer(i);
      nodes.Run(static_cast<Nanos>(nodes.rng().Below(600)) * SimulatedNodes::kMs);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes.core(i)) continue;
        ASSERT_LE(std::ranges::count(nodes.held(i), 1), kMostHeld + HoldingFacts::kSwapSlots);
        if (!nodes.core(i)->plan()) continue;
        ASSERT_GE(nodes.core(i)->plan()->epoch, epochs[i]);
        epochs[i] = nodes.core(i)->plan()->epoch;
      }
      if (HasFailure()) return;
    }
    nodes.Run(10 * kServingSecond);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_FALSE(nodes.core(i) != nullptr && serving.waits(i)) << "node " << i;
    }
    const auto [more_calls, more_fetches] = serving.Counters();
    calls.hedges += more_calls.hedges;
    calls.answered += more_calls.answered;
    calls.overtook += more_calls.overtook;
    calls.lost += more_calls.lost;
    calls.refused += more_calls.refused;
    calls.failed_loads += more_calls.failed_loads;
    fetches.experts += more_fetches.experts;
    fetches.resumed += more_fetches.resumed;
    answered += serving.answered();
    if (HasFailure()) return;
  }
  for (const std::uint64_t count :
       {answered, calls.hedges, calls.answered, calls.overtook, calls.lost, calls.refused,
        calls.failed_loads, fetches.experts}) {
    EXPECT_GT(count, 0u);  // each of them has happened
  }
}

}  // namespace
}  // namespace troupe
