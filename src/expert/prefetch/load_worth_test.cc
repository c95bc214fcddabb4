#include "expert/prefetch/load_worth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(LoadWorth, ALoadThatIsSureAndEndsInTimeSavesAllOfIt) {
  const LinkPace pace{.load = 2, .held = 2, .idle_a_layer = 1};
  EXPECT_DOUBLE_EQ(WorthOfLoad({.chance = 1, .ahead = 3, .idle_left = 1}, pace), 2);
}

TEST(LoadWorth, ALoadThatIsSureAndEndsLateSavesWhatLiesBeforeTheAsk) {
  const LinkPace pace{.load = 2, .held = 2, .idle_a_layer = 1};
  EXPECT_DOUBLE_EQ(WorthOfLoad({.chance = 1, .ahead = 1, .idle_left = 0.5}, pace), 0.5);
  EXPECT_DOUBLE_EQ(WorthOfLoad({.chance = 1, .ahead = 2, .idle_left = 1, .queued = 1.5}, pace),
                   0.5);
  EXPECT_DOUBLE_EQ(WorthOfLoad({.chance = 1, .ahead = 1, .idle_left = 1, .queued = 3}, pace), 0);
}

TEST(LoadWorth, OnALinkThatNobodyElseUsesAnyChanceIsWorthALoadButForItsVictim) {
  LinkPace pace{.load = 1, .held = 1, .idle_a_layer = 1};
  EXPECT_GT(WorthOfLoad({.chance = 0.01, .ahead = 1, .idle_left = 1}, pace), 0);
  pace.regret = 0.5;
  EXPECT_LT(WorthOfLoad({.chance = 0.3, .ahead = 1, .idle_left = 1}, pace), 0);
  EXPECT_GT(WorthOfLoad({.chance = 0.4, .ahead = 1, .idle_left = 1}, pace), 0);
}

TEST(LoadWorth, DemandThatWouldWaitForALoadMustBeOutweighed) {
  // Every layer asks, the load is twice as long as a layer: the first ask waits for its second
  // half.
  const LinkPace pace{.load = 2, .held = 2, .idle_a_layer = 1, .asks = 1};
  EXPECT_DOUBLE_EQ(WorthOfLoad({.chance = 1, .ahead = 2, .idle_left = 1}, pace), 2 - 1);
  EXPECT_DOUBLE_EQ(WorthOfLoad({.chance = 0, .ahead = 2, .idle_left = 1}, pace), -1);
  EXPECT_DOUBLE_EQ(LeastChance({.ahead = 2, .idle_left = 1}, pace), 0.5);
}

TEST(LoadWorth, WhatALinkLetsDemandOvertakeCostsItLess) {
  const LinkPace whole{.load = 2, .held = 2, .idle_a_layer = 1, .asks = 1};
  LinkPace pieces = whole;
  pieces.held = 0.1;
  const LoadAhead load{.chance = 0.4, .ahead = 2, .idle_left = 1};
  EXPECT_LT(WorthOfLoad(load, whole), 0);
  EXPECT_GT(WorthOfLoad(load, pieces), 0);
}

TEST(LoadWorth, NothingIsWorthAnythingOnASaturatedLinkOrOneThatWasNotMeasured) {
  EXPECT_EQ(WorthOfLoad({.chance = 1, .ahead = 4}, {}), 0);
  EXPECT_GT(LeastChance({.ahead = 4}, {}), 1);
  const LinkPace saturated{.load = 2, .held = 2, .idle_a_layer = 0, .asks = 1};
  EXPECT_LE(WorthOfLoad({.chance = 1, .ahead = 4}, saturated), 0);
}

TEST(LoadWorth, IsNothingAtTheLeastChanceAndGrowsWithIt) {
  Rng rng(TestSeed());
  for (int i = 0; i < 2000; ++i) {
    const LinkPace pace{.load = 0.1 + rng.Uniform(),
                        .held = rng.Uniform(),
                        .idle_a_layer = rng.Uniform(),
                        .asks = rng.Uniform(),
                        .regret = rng.Uniform()};
    LoadAhead load{.chance = 0,
                   .ahead = static_cast<std::uint32_t>(1 + rng.Below(5)),
                   .idle_left = rng.Uniform(),
                   .queued = rng.Uniform()};
    const double least = LeastChance(load, pace);
    if (least > 1) continue;
    load.chance = least;
    EXPECT_NEAR(WorthOfLoad(load, pace), 0, 1e-9);
    load.chance = std::min(1.0, least + 0.1);
    EXPECT_GE(WorthOfLoad(load, pace), -1e-9);
  }
}

// A few layers that each compute for some time and then ask, a link that reads one expert at a
// time and stops for nobody, and experts of which it is known whether they will be asked for.
struct SmallCase {
  struct Expert {
    std::size_t layer = 0;
    bool asked = false;
  };
  std::vector<double> computing;  // before each layer asks
  std::vector<Expert> experts;
  double load = 1;
};

// Which load ahead begins next, if any: so long before `layer` asks, where those that have begun
// have a time in `there`.
using NextLoad = std::function<std::optional<std::size_t>(std::size_t layer, double idle_left,
                                                          const std::vector<double>& there)>;

// Time until the last layer has its experts, where loads ahead begin whenever the link is free.
// Those that did not begin before their layer asks are loaded on demand.
double TimeWith(const SmallCase& of, const NextLoad& next) {
  double now = 0, link_free = 0;
  std::vector<double> there(of.experts.size(), -1);
  for (std::size_t layer = 0; layer < of.computing.size(); ++layer) {
    const double ask = now + of.computing[layer];
    for (double begins = std::max(now, link_free); begins < ask; begins = link_free) {
      const std::optional<std::size_t> load = next(layer, ask - begins, there);
      if (!load) break;
      link_free = there[*load] = begins + of.load;
    }
    now = ask;
    double ready = now;
    for (std::size_t e = 0; e < of.experts.size(); ++e) {
      if (of.experts[e].layer != layer || !of.experts[e].asked) continue;
      if (there[e] < 0) link_free = there[e] = std::max(link_free, now) + of.load;
      ready = std::max(ready, there[e]);
    }
    now = ready;
  }
  return now;
}

// In this order.
double TimeOf(const SmallCase& of, const std::vector<std::size_t>& order) {
  std::size_t next = 0;
  return TimeWith(of, [&](std::size_t layer, double, const auto&) -> std::optional<std::size_t> {
    while (next < order.size() && of.experts[order[next]].layer < layer) ++next;
    if (next == order.size()) return std::nullopt;
    return order[next++];
  });
}

// What the rule begins, the most worth first, where it is told which experts will be asked for.
double TimeByWorth(const SmallCase& of) {
  const auto layers = static_cast<double>(of.computing.size());
  const auto asked = std::ranges::count(of.experts, true, &SmallCase::Expert::asked);
  const LinkPace pace{
      .load = of.load,
      .held = of.load,
      .idle_a_layer = std::accumulate(of.computing.begin(), of.computing.end(), 0.0) / layers,
      .asks = std::min(1.0, static_cast<double>(asked) / layers)};
  return TimeWith(of, [&](std::size_t layer, double idle_left, const auto& there) {
    double most = 0;
    std::optional<std::size_t> best;
    for (std::size_t e = 0; e < of.experts.size(); ++e) {
      if (of.experts[e].layer < layer || there[e] >= 0) continue;
      const double worth =
          WorthOfLoad({.chance = of.experts[e].asked ? 1.0 : 0.0,
                       .ahead = static_cast<std::uint32_t>(of.experts[e].layer - layer + 1),
                       .idle_left = idle_left},
                      pace);
      if (worth > most) most = worth, best = e;
    }
    return best;
  });
}

SmallCase RandomCase(Rng& rng) {
  SmallCase small{.computing = {}, .experts = {}, .load = 0.25 + 2 * rng.Uniform()};
  const std::size_t layers = 2 + rng.Below(4);
  for (std::size_t layer = 0; layer < layers; ++layer) small.computing.push_back(1);
  const std::size_t experts = 1 + rng.Below(5);
  for (std::size_t e = 0; e < experts; ++e) {
    small.experts.push_back({.layer = rng.Below(layers), .asked = rng.Below(2) == 0});
  }
  return small;
}

TEST(LoadWorth, IsNearTheBestScheduleWhereForecastsAreRight) {
  Rng rng(TestSeed());
  double none = 0, best_of_all = 0, worth = 0;
  for (int run = 0; run < 500; ++run) {
    const SmallCase small = RandomCase(rng);
    std::vector<std::size_t> order(small.experts.size());
    std::iota(order.begin(), order.end(), 0u);
    double best = TimeOf(small, {});
    none += best;
    do {
      for (std::size_t count = 1; count <= order.size(); ++count) {
        best = std::min(best, TimeOf(small, {order.begin(),
                                             order.begin() + static_cast<std::ptrdiff_t>(count)}));
      }
    } while (std::ranges::next_permutation(order).found);
    const double mine = TimeByWorth(small);
    EXPECT_GE(mine, best - 1e-9);
    EXPECT_LE(mine, TimeOf(small, {}) + 1e-9) << "run " << run;
    best_of_all += best;
    worth += mine;
  }
  // Of what the best schedules save.
  EXPECT_GE(none - worth, 0.8 * (none - best_of_all));
}

TEST(LoadWorth, ForecastsThatAreAlwaysWrongAndKnownToBeCostNothing) {
  Rng rng(TestSeed());
  for (int run = 0; run < 500; ++run) {
    SmallCase small = RandomCase(rng);
    for (SmallCase::Expert& expert : small.experts) expert.asked = false;
    small.experts.push_back({.layer = 1, .asked = true});
    // Each is said to be asked for with the chance that such forecasts have: none.
    EXPECT_LE(TimeByWorth(small), TimeOf(small, {}) + 1e-9);
  }
}

}  // namespace
}  // namespace troupe
