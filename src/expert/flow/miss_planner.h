// How each miss of a layer is answered, from measured costs: wait, load, load the low copy, have it
// computed elsewhere, substitute a resident, or drop it (miss_plan.h). One pure decision for a
// disk, a peer and a second processor alike.
//
// It makes small: the seconds until the layer ends, and the price of what is lost, in seconds. Of
// plans that are as good the one that loads the most is taken: what is loaded is there the next
// time.
//
//   - Exact answers only: wait, load and elsewhere. With no other place that is 'load everything,
//     the best first'; with one it is S4's two pointers, as lane_balance.h has them.
//   - Of a medium that was not measured everything is loaded.
//   - Never worse than loading everything. The best there is while few plans are possible
//     (kMostPlans); beyond that the best of a fixed family of some hundreds, for up to 6 misses
//     never worse than twice the best.
//   - A faster medium never makes the plan worse: which plans are looked at does not depend on its
//     speed.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "expert/flow/miss_plan.h"
#include "expert/flow/miss_timeline.h"

namespace troupe {

// Keeps its memory from one layer to the next, and nothing else: the same facts, the same plan.
class MissPlanner {
 public:
  // All ways to answer the misses are tried if there are no more than this: 12 misses with two
  // answers each, 6 with four. Some tens of microseconds.
  static constexpr std::uint64_t kMostPlans = 4096;

  // Valid until the next call.
  const MissPlan& Plan(const LayerMisses& layer);

 private:
  struct Item {
    const Miss* miss = nullptr;
    // In options_. The first one is to wait or to load, where that is possible.
    std::uint32_t begin = 0, end = 0;
    bool can_stand = false;  // the first one is
  };
  using Assignment = std::vector<MissOption>;
  struct Score {
    double cost = std::numeric_limits<double>::infinity();
    std::uint32_t moved = 0;  // answered by neither waiting nor loading

    auto operator<=>(const Score&) const = default;
  };

  void ListItems(const LayerMisses& layer);
  void ListOptions(const LayerMisses& layer, Item& item);
  Score Evaluate(MissTimeline& timeline, const Assignment& answers) const;
  void TakeIfBetter(MissTimeline& timeline, const Assignment& answers);
  std::optional<MissOption> GiveAway(MissTimeline& timeline, const Item& item) const;
  void MakeStanding(MissTimeline& timeline);
  void TryCuts(MissTimeline& timeline, const Assignment& base, std::size_t most_cuts);
  void TryLosses(MissTimeline& timeline);
  bool FewPlans() const;
  void TryAll(MissTimeline& timeline, std::size_t at, const MissTimeline::Moment& moment,
              std::uint32_t moved);
  void Conclude(const LayerMisses& layer, MissTimeline& timeline);
  MissReason WhyOf(const LayerMisses& layer, const Item& item, const MissOption& option) const;

  std::vector<Item> items_;  // loads under way first, then the best first
  std::vector<MissOption> options_;
  Assignment standing_;  // everything waited for or loaded that can be
  Assignment base_, trial_, best_;
  std::vector<std::pair<std::size_t, MissOption>> moves_;
  Score best_score_;
  MissPlan plan_;
};

}  // namespace troupe
