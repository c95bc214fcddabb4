#include "expert/prefetch/token_comparison.h"

#include <algorithm>
#include <cmath>

namespace troupe {

void TokenComparison::Add(Kind kind, double loads, double seconds) {
  Sample& s = samples_[static_cast<std::size_t>(kind)];
  s.count += 1;
  s.count2 += 1;
  const double off_loads = loads - s.loads, off_seconds = seconds - s.seconds;
  s.loads += off_loads / s.count;
  s.seconds += off_seconds / s.count;
  s.loads2 += off_loads * (loads - s.loads);
  s.product += off_loads * (seconds - s.seconds);
  s.seconds2 += off_seconds * (seconds - s.seconds);
}

void TokenComparison::Age() {
  for (Sample& s : samples_) {
    s.count /= 2;
    s.count2 /= 4;
    s.loads2 /= 2;
    s.product /= 2;
    s.seconds2 /= 2;
  }
}

TokenComparison::Difference TokenComparison::Compare() const {
  const Sample& with = samples_[static_cast<std::size_t>(Kind::kWith)];
  const Sample& without = samples_[static_cast<std::size_t>(Kind::kWithout)];
  if (with.count < 2 || without.count < 2) return {};
  const double loads2 = with.loads2 + without.loads2, product = with.product + without.product;
  const double apart = with.loads - without.loads;
  if (loads2 == 0 && apart != 0) return {};  // the loads may explain all of it, or nothing
  const double slope = loads2 > 0 ? product / loads2 : 0;
  // Two means and a slope are estimated from tokens that no longer count whole: the variance of a
  // mean is the sum of squared weights over the square of their sum, and each takes a mean weight's
  // worth of freedom.
  const double weight_with = with.count2 / with.count;
  const double weight_without = without.count2 / without.count;
  const double weight = (with.count2 + without.count2) / (with.count + without.count);
  const double freedom =
      with.count - weight_with + without.count - weight_without - (loads2 > 0 ? weight : 0);
  if (freedom < 1) return {};
  const double left = std::max(0.0, with.seconds2 + without.seconds2 - slope * product) / freedom;
  const double spread = weight_with / with.count + weight_without / without.count +
                        (loads2 > 0 ? apart * apart * weight / loads2 : 0);
  return {.seconds = with.seconds - without.seconds - slope * apart,
          .error = std::sqrt(left * spread)};
}

}  // namespace troupe
