#include "expert/forecast/shallow_choice.h"

#include <algorithm>
#include <memory>

#include "expert/cache/echo.h"
#include "expert/cache/expert_cache.h"
#include "expert/cache/quotas.h"

namespace troupe {
namespace {

ShallowCost CostOf(const RecordedRoutes& routes, std::span<const double> covered,
                   std::uint32_t slots, std::uint32_t spare, std::uint32_t shallow) {
  ExpertCache cache(
      {.grid = routes.grid,
       .slots = slots,
       .quotas = ShallowQuotas(routes.grid, routes.first_layer, slots, spare, shallow)},
      std::make_unique<Echo>(routes.grid));
  ShallowCost cost{.layers = shallow};
  std::size_t at = 0;
  for (std::size_t token = 0; token < routes.tokens(); ++token) {
    for (std::uint32_t layer = routes.first_layer; layer < routes.grid.layers; ++layer) {
      for (std::uint32_t k = 0; k < routes.experts_per_token; ++k) {
        const ExpertId id{layer, routes.ids[at++]};
        if (cache.Ask(id, 1) == Residence::kResident) continue;
        cost.misses += 1;
        cost.uncovered += 1 - covered[layer];
        if (cache.Admit(id)) cache.OnLoaded(id);
      }
    }
  }
  const double tokens = static_cast<double>(std::max<std::size_t>(1, routes.tokens()));
  cost.misses /= tokens;
  cost.uncovered /= tokens;
  return cost;
}

}  // namespace

std::vector<ShallowCost> CostsOfShallow(const RecordedRoutes& routes,
                                        std::span<const double> covered, std::uint32_t slots,
                                        std::uint32_t spare, std::uint32_t most) {
  std::vector<ShallowCost> costs;
  for (std::uint32_t shallow = 0; shallow <= most; ++shallow) {
    costs.push_back(CostOf(routes, covered, slots, spare, shallow));
  }
  return costs;
}

std::uint32_t BestShallow(std::span<const ShallowCost> costs) {
  const ShallowCost* best = nullptr;
  for (const ShallowCost& cost : costs) {
    if (cost.misses > costs.front().misses) continue;
    if (best == nullptr || cost.uncovered < best->uncovered) best = &cost;
  }
  return best == nullptr ? 0 : best->layers;
}

}  // namespace troupe
