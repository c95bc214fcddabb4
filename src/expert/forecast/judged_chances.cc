#include "expert/forecast/judged_chances.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

std::size_t ChanceHistogram::BinOf(double chance) {
  const double bin = std::clamp(chance, 0.0, 1.0) * static_cast<double>(kBins);
  return std::min(kBins - 1, static_cast<std::size_t>(bin));
}

void ChanceHistogram::Count(std::size_t bin, bool asked) {
  TROUPE_DCHECK(bin < kBins);
  ++bins_[bin].said;
  bins_[bin].asked += asked ? 1 : 0;
}

std::uint64_t ChanceHistogram::misses() const {
  std::uint64_t misses = 0;
  for (const Bin& bin : bins_) misses += bin.asked;
  return misses;
}

double ChanceHistogram::RecallAt(double precision) const {
  // A lower threshold finds no fewer, so the last one that is precise enough finds the most.
  std::uint64_t said = 0, asked = 0, found = 0;
  for (std::size_t bin = kBins; bin-- > 0;) {
    said += bins_[bin].said;
    asked += bins_[bin].asked;
    if (static_cast<double>(asked) >= precision * static_cast<double>(said)) found = asked;
  }
  return asked == 0 ? 0 : static_cast<double>(found) / static_cast<double>(asked);
}

bool JudgedChances::any() const {
  const auto said = [](const ChanceHistogram& histogram) {
    return std::ranges::any_of(histogram.bins(),
                               [](const ChanceHistogram::Bin& bin) { return bin.said > 0; });
  };
  return std::ranges::any_of(same_token, said) || std::ranges::any_of(next_token, said);
}

}  // namespace troupe
