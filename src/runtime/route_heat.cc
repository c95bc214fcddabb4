#include "runtime/route_heat.h"

#include <algorithm>
#include <cmath>

namespace troupe {

RouteHeat::RouteHeat(ExpertGrid grid, std::uint32_t top_k)
    : grid_(grid),
      top_k_(top_k),
      tokens_(grid.layers),
      counts_(grid.Count()),
      heat_(grid.Count()) {}

void RouteHeat::PassBegins(const PassFacts& pass) {
  sure_.clear();
  std::uint32_t first = 0;
  for (const RowGroupFacts& group : pass.groups) {
    sure_.push_back({.first = first, .count = group.sure()});
    first += group.rows;
  }
}

void RouteHeat::Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
                       std::span<const float> /*scores*/) {
  if (tokens_[layer] > kMostUnseen) return;
  std::uint32_t* const counts = counts_.data() + grid_.Index({.layer = layer, .expert = 0});
  for (const Rows& rows : sure_) {
    tokens_[layer] += rows.count;
    const auto of_rows =
        chosen.subspan(std::size_t{rows.first} * top_k_, std::size_t{rows.count} * top_k_);
    for (const ExpertChoice& choice : of_rows) ++counts[choice.expert];
  }
}

std::span<const float> RouteHeat::Look() {
  for (std::uint32_t layer = 0; layer < grid_.layers; ++layer) {
    if (tokens_[layer] == 0) continue;
    const double tokens = tokens_[layer];
    const auto kept = static_cast<float>(std::exp(-tokens / kMemory));
    const auto added = static_cast<float>((1 - kept) / tokens);
    const std::size_t first = grid_.Index({.layer = layer, .expert = 0});
    for (std::size_t i = first; i < first + grid_.experts; ++i) {
      heat_[i] = kept * heat_[i] + added * static_cast<float>(counts_[i]);
    }
    std::fill_n(counts_.begin() + static_cast<std::ptrdiff_t>(first), grid_.experts, 0u);
    tokens_[layer] = 0;
  }
  return heat_;
}

}  // namespace troupe
