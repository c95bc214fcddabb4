// Divides a layer's experts into groups so that experts which tokens choose together share one: the
// fewer groups a token's experts lie in, the fewer its gate has to look into. A pure function of
// the counts. Why: docs/design/group-gate.md.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"

namespace troupe {

// Of one layer: every expert in one group. Experts of a group rise, and groups lie in the order of
// their first experts.
using ExpertGroups = std::vector<std::vector<std::uint32_t>>;

// How often two experts were chosen together: symmetric, finite and not negative.
using ChosenTogether = std::function<double(std::uint32_t a, std::uint32_t b)>;

// Sizes differ by one at most. Greedy, then exchanges of two experts as long as one brings more of
// the pairs chosen together into one group. REQUIRES: 1 <= groups <= experts.
ExpertGroups GroupExperts(std::uint32_t experts, std::uint32_t groups,
                          const ChosenTogether& together);

// Of all pairs chosen together, the share that lies in one group; 1 if there was none.
double ShareInOneGroup(const ExpertGroups& groups, const ChosenTogether& together);

// Ok if every one of `experts` is in one group, in the order described, and no group is empty.
Status CheckGroups(const ExpertGroups& groups, std::uint32_t experts);

}  // namespace troupe
