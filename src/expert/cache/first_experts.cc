#include "expert/cache/first_experts.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {
namespace {

struct Used {
  ExpertId id;
  double uses = 0;
};

// Equal ones in the order of their ids, so that the same counts fill the same slots.
void KeepMostUsed(std::vector<Used>& experts, std::size_t most) {
  std::ranges::stable_sort(experts, std::ranges::greater(), &Used::uses);
  experts.resize(std::min(experts.size(), most));
}

}  // namespace

std::vector<std::vector<std::uint32_t>> FirstExperts(const CacheShape& shape,
                                                     std::span<const double> uses) {
  const ExpertGrid& grid = shape.grid;
  TROUPE_CHECK(uses.size() == grid.Count());
  std::vector<std::vector<std::uint32_t>> first(grid.layers);
  std::vector<Used> all;
  for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
    std::vector<Used> of_layer;
    for (std::uint32_t expert = 0; expert < grid.experts; ++expert) {
      const ExpertId id{.layer = layer, .expert = expert};
      if (uses[grid.Index(id)] > 0) of_layer.push_back({id, uses[grid.Index(id)]});
    }
    if (!shape.quotas.empty()) KeepMostUsed(of_layer, shape.quotas[layer]);
    all.insert(all.end(), of_layer.begin(), of_layer.end());
  }
  KeepMostUsed(all, shape.slots);
  for (const Used& expert : all) first[expert.id.layer].push_back(expert.id.expert);
  return first;
}

}  // namespace troupe
