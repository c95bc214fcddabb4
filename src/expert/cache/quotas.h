// How many of the cache's slots each layer may keep.
#pragma once

#include <cstdint>
#include <vector>

#include "expert/cache/eviction_policy.h"

namespace troupe {

// A number a layer; layers before `first_layer` have no experts. `spare` slots belong to nobody:
// the layer under way loads into them while its residents are in use.

// The same for all.
std::vector<std::uint32_t> EvenQuotas(const ExpertGrid& grid, std::uint32_t first_layer,
                                      std::uint32_t slots, std::uint32_t spare);

// Of one pool: what a layer keeps whatever the others load, as a share of the even one.
std::uint32_t FloorOf(std::uint32_t layers, std::uint32_t slots, double share);

// Fate's shallow-favouring shares: the first `shallow` layers with experts are filled first, one
// after the other and each fully, as far as slots go; the others share the rest evenly. `without`:
// flags of layers that have no experts, those behind the first among them; empty: all have.
std::vector<std::uint32_t> ShallowQuotas(const ExpertGrid& grid, std::uint32_t first_layer,
                                         std::uint32_t slots, std::uint32_t spare,
                                         std::uint32_t shallow,
                                         const std::vector<bool>& without = {});

}  // namespace troupe
