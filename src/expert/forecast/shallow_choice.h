// How many of the first layers to cache fully (Fate's boundary L). Forecasts are worst in shallow
// layers; but a slot that goes to one layer is taken from the others. So the choice is made by what
// it costs: a recorded run goes through the cache with each L, and a miss counts by as much of it
// as its layer's forecasts do not cover.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/cache/eviction_policy.h"

namespace troupe {

// What one token chose, layer by layer: `experts_per_token` ids each, for layers from `first_layer`
// on.
struct RecordedRoutes {
  ExpertGrid grid;
  std::uint32_t first_layer = 0;
  std::uint32_t experts_per_token = 0;
  std::vector<std::uint16_t> ids;  // [token][layer from first_layer on][k]

  std::size_t LayersWithExperts() const { return grid.layers - first_layer; }
  std::size_t tokens() const { return ids.size() / (LayersWithExperts() * experts_per_token); }
};

struct ShallowCost {
  std::uint32_t layers = 0;  // L
  double misses = 0;         // a token
  double uncovered = 0;      // of these, those that no forecast announced

  bool operator==(const ShallowCost&) const = default;
};

// Of a cache of `slots` that evicts as an engine does unless it is told otherwise, with L from 0 to
// `most`; token by token.
// `covered`, a number a layer, is the share of a layer's experts that forecasts announce.
std::vector<ShallowCost> CostsOfShallow(const RecordedRoutes& routes,
                                        std::span<const double> covered, std::uint32_t slots,
                                        std::uint32_t spare, std::uint32_t most);

// Of those that miss no more, in all, than with none kept, the one that misses the least uncovered;
// of equals the smallest. More misses are more bytes, and a link that takes longer than a layer for
// an expert hides none of them, predicted or not.
std::uint32_t BestShallow(std::span<const ShallowCost> costs);

}  // namespace troupe
