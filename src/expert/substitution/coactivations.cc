#include "expert/substitution/coactivations.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace troupe {

Bytes Coactivations::BytesFor(ExpertGrid grid) {
  return Bytes((grid.Count() + 2 * grid.layers * PairsOf(grid)) * sizeof(double));
}

Coactivations::Coactivations(ExpertGrid grid)
    : grid_(grid),
      activations_(grid.Count()),
      together_(grid.layers * PairsOf(grid)),
      weighted_(grid.layers * PairsOf(grid)) {}

std::size_t Coactivations::Pair(std::uint32_t layer, std::uint32_t a, std::uint32_t b) const {
  TROUPE_DCHECK(a != b && a < grid_.experts && b < grid_.experts && layer < grid_.layers);
  const std::size_t low = std::min(a, b), high = std::max(a, b);
  return layer * PairsOf(grid_) + high * (high - 1) / 2 + low;
}

void Coactivations::Add(std::uint32_t layer, std::span<const std::uint32_t> experts,
                        std::span<const float> weights, double count) {
  TROUPE_CHECK(weights.empty() || weights.size() == experts.size());
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < experts.size(); ++i) {
    activations_[grid_.Index({layer, experts[i]})] += count;
    for (std::size_t j = 0; j < i; ++j) {
      const std::size_t pair = Pair(layer, experts[i], experts[j]);
      together_[pair] += count;
      if (sum > 0) weighted_[pair] += count * std::min(weights[i], weights[j]) / sum;
    }
  }
}

double WarmUpCount(std::uint32_t position, std::uint32_t warm_up, double least) {
  if (position >= warm_up) return 1;
  return least + (1 - least) * position / warm_up;
}

}  // namespace troupe
