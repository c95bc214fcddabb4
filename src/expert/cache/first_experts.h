// Which experts a cache begins with, by how often each was used before: those that its layers used
// most, as far as their slots go. Knows neither where the counts come from nor how experts are
// read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/cache/eviction_policy.h"

namespace troupe {

// By layer, the most used first. A layer has its quota of them; without quotas those of all layers
// compete for the slots. `uses` is by ExpertGrid::Index; an expert that was never used is left out,
// and so is a layer of which nothing is known.
std::vector<std::vector<std::uint32_t>> FirstExperts(const CacheShape& shape,
                                                     std::span<const double> uses);

}  // namespace troupe
