#include "server/recent_times.h"

#include <algorithm>
#include <cmath>

namespace troupe {

void RecentTimes::Add(double seconds) {
  const MutexLock lock(mu_);
  if (times_.size() < most_) {
    times_.push_back(seconds);
    return;
  }
  times_[next_] = seconds;
  next_ = (next_ + 1) % most_;
}

RecentTimes::Percentiles RecentTimes::Look() const {
  std::vector<double> sorted;
  {
    const MutexLock lock(mu_);
    sorted = times_;
  }
  if (sorted.empty()) return {};
  std::ranges::sort(sorted);
  // The smallest time that this share of all does not exceed.
  const auto below = [&](double share) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<std::size_t>(rank, 1) - 1];
  };
  return {.count = sorted.size(), .p50 = below(0.50), .p99 = below(0.99)};
}

}  // namespace troupe
