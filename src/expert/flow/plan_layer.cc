#include "expert/flow/plan_layer.h"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

// Only the quotient of size and speed counts.
constexpr Bytes kExpert = 1_MiB;
constexpr std::array<std::uint32_t, 1> kSecondLane = {0};
// A place whose costs are all 0 counts as not measured; this one may truly cost nothing.
constexpr double kLeastSeconds = 1e-12;

}  // namespace

const MissPlan& LayerPlanner::PlanLayer(std::span<const LaneMiss> misses, const TwoLanes& lanes) {
  misses_.clear();
  for (const LaneMiss& miss : misses) {
    misses_.push_back({.expert = miss.expert,
                       .rows = miss.rows,
                       .weight = miss.weight,
                       .full = kExpert,
                       .places = kSecondLane});
  }
  const std::array places = {Place{.name = "the second lane",
                                   .expert_seconds = std::max(lanes.other_seconds, kLeastSeconds)}};
  const double expert = static_cast<double>(kExpert.count());
  const bool free = lanes.load_seconds <= 0;  // then everything is loaded
  const double rate = free ? 0 : expert / lanes.load_seconds;
  return planner_.Plan(
      {.misses = misses_,
       .places = places,
       .medium = {.latency_seconds = lanes.latency_seconds,
                  .bytes_per_second = rate,
                  .queued = Bytes(static_cast<std::uint64_t>(lanes.queued_seconds * rate))},
       .local = lanes.local,
       .order = MissOrder::kWeight});
}

}  // namespace troupe
