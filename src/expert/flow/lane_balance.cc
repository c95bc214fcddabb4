#include "expert/flow/lane_balance.h"

#include <numeric>

#include "base/check.h"

namespace troupe {

LaneSplit BalanceLanes(std::uint32_t experts, const LaneCosts& costs, LaneRule rule) {
  TROUPE_CHECK(costs.load_seconds >= 0 && costs.other_seconds >= 0);
  LaneSplit split;
  const bool with_it = rule == LaneRule::kEndsFirstWithIt;
  while (split.load + split.other < experts) {
    const double load = split.load_seconds + (with_it ? costs.load_seconds : 0);
    const double other = split.other_seconds + (with_it ? costs.other_seconds : 0);
    if (load <= other) {
      ++split.load;
      split.load_seconds += costs.load_seconds;
    } else {
      ++split.other;
      split.other_seconds += costs.other_seconds;
    }
  }
  return split;
}

void WindowMean::Add(double value) {
  values_.push_back(value);
  if (values_.size() > count_) values_.pop_front();
}

std::optional<double> WindowMean::Mean() const {
  if (values_.empty()) return std::nullopt;
  // Summed anew each time: few values, and no error that grows.
  return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

}  // namespace troupe
