// Activations that a leader has been told of, older ones counting less. Pure.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

class AgedActivity {
 public:
  explicit AgedActivity(double half_life_seconds) : half_life_(half_life_seconds) {}

  // Counted over the last `seconds`.
  void Add(std::span<const std::uint32_t> counts, double seconds) {
    values_.resize(counts.size());
    const double kept = std::exp2(-seconds / half_life_);
    for (std::size_t i = 0; i < counts.size(); ++i) values_[i] = values_[i] * kept + counts[i];
  }

  // Empty before the first.
  const std::vector<double>& values() const { return values_; }

 private:
  double half_life_;
  std::vector<double> values_;
};

}  // namespace troupe
