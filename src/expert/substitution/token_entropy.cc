#include "expert/substitution/token_entropy.h"

#include <algorithm>

#include "base/check.h"
#include "base/exact_exp.h"
#include "base/exact_log.h"

namespace troupe {

TokenEvenness EvennessOf(std::span<const ExpertChoice> chosen, double temperature) {
  if (chosen.size() < 2) return {};
  const double heaviest = std::ranges::max_element(chosen, {}, &ExpertChoice::weight)->weight;
  const auto evened = [&](float weight) {
    if (!(weight > 0)) return 0.0;
    if (temperature == 1) return double{weight};
    return ExactExp(ExactLog(weight / heaviest) / temperature);
  };
  // H = log(sum) - sum(v log v) / sum needs the values only once.
  double sum = 0, v_log_v = 0, largest = 0, second = 0;
  for (const ExpertChoice& slot : chosen) {
    const double v = evened(slot.weight);
    sum += v;
    if (v > 0) v_log_v += v * ExactLog(v);
    second = std::max(second, std::min(largest, v));
    largest = std::max(largest, v);
  }
  if (!(sum > 0)) return {};
  const double entropy = (ExactLog(sum) - v_log_v / sum) / ExactLog(double(chosen.size()));
  return {.entropy = std::clamp(entropy, 0.0, 1.0), .margin = (largest - second) / sum};
}

void EntropyHistogram::Add(double entropy) {
  TROUPE_DCHECK(entropy >= 0 && entropy <= 1);
  ++counts_[static_cast<std::size_t>(entropy * kSteps)];
  ++tokens_;
}

double EntropyHistogram::Percentile(double share) const {
  std::uint64_t below = 0;
  for (std::size_t step = 0; step <= kSteps; ++step) {
    below += counts_[step];
    if (static_cast<double>(below) > share * static_cast<double>(tokens_)) {
      return static_cast<double>(step) / kSteps;
    }
  }
  return 1;
}

}  // namespace troupe
