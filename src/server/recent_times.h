// The last times of a kind, and what half of them and nearly all of them stay below: for people who
// watch. Histograms of all times are serve_metrics.h's. Thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "base/mutex.h"

namespace troupe {

class RecentTimes {
 public:
  explicit RecentTimes(std::size_t most) : most_(most) {}

  void Add(double seconds);

  struct Percentiles {
    std::size_t count = 0;  // 0: nothing is known
    double p50 = 0, p99 = 0;
  };
  Percentiles Look() const;

 private:
  const std::size_t most_;
  mutable Mutex mu_;
  std::vector<double> times_ TROUPE_GUARDED_BY(mu_);  // a ring once it is full
  std::size_t next_ TROUPE_GUARDED_BY(mu_) = 0;
};

}  // namespace troupe
