#include "expert/cache/quotas.h"

#include <algorithm>
#include <span>

namespace troupe {
namespace {

void ShareEvenly(std::vector<std::uint32_t>& quotas, std::span<const std::uint32_t> layers,
                 std::uint32_t slots, std::uint32_t experts) {
  const auto count = static_cast<std::uint32_t>(layers.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    // The remainder goes to the first layers: what they miss is what a token waits for first.
    quotas[layers[i]] = std::min(experts, slots / count + (i < slots % count ? 1 : 0));
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
                                         std::uint32_t shallow, const std::vector<bool>& without) {
  std::vector<std::uint32_t> quotas(grid.layers), with;
  for (std::uint32_t layer = first_layer; layer < grid.layers; ++layer) {
    if (without.empty() || !without[layer]) with.push_back(layer);
  }
  std::uint32_t left = slots - std::min(spare, slots);
  std::span<const std::uint32_t> layers = with;
  for (; shallow > 0 && !layers.empty() && left > 0; --shallow, layers = layers.subspan(1)) {
    quotas[layers.front()] = std::min(left, grid.experts);
    left -= quotas[layers.front()];
  }
  ShareEvenly(quotas, layers, left, grid.experts);
  return quotas;
}

}  // namespace troupe
