#include "expert/cache/quotas.h"

#include <algorithm>

namespace troupe {
namespace {

void ShareEvenly(std::vector<std::uint32_t>& quotas, std::uint32_t first, std::uint32_t slots,
                 std::uint32_t experts) {
  const auto layers = static_cast<std::uint32_t>(quotas.size()) - first;
  for (std::uint32_t i = 0; i < layers; ++i) {
    // The remainder goes to the first layers: what they miss is what a token waits for first.
    quotas[first + i] = std::min(experts, slots / layers + (i < slots % layers ? 1 : 0));
  }
}

}  // namespace

std::vector<std::uint32_t> EvenQuotas(const ExpertGrid& grid, std::uint32_t first_layer,
                                      std::uint32_t slots, std::uint32_t spare) {
  return ShallowQuotas(grid, first_layer, slots, spare, 0);
}

std::uint32_t FloorOf(std::uint32_t layers, std::uint32_t slots, double share) {
  return static_cast<std::uint32_t>(share * slots / layers + 1e-9);
}

std::vector<std::uint32_t> ShallowQuotas(const ExpertGrid& grid, std::uint32_t first_layer,
                                         std::uint32_t slots, std::uint32_t spare,
                                         std::uint32_t shallow) {
  std::vector<std::uint32_t> quotas(grid.layers);
  std::uint32_t left = slots - std::min(spare, slots);
  std::uint32_t layer = first_layer;
  for (; shallow > 0 && layer < grid.layers && left > 0; --shallow, ++layer) {
    quotas[layer] = std::min(left, grid.experts);
    left -= quotas[layer];
  }
  if (layer < grid.layers) ShareEvenly(quotas, layer, left, grid.experts);
  return quotas;
}

}  // namespace troupe
