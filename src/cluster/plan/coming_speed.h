// How fast an expert comes to a node that is to hold it: from its own disk, or from a peer that
// holds it where their link gives enough. What Eq. 3 weighs a plan with. Pure.
#pragma once

#include <cstdint>

#include "cluster/plan/plan_maker.h"
#include "placement/migration.h"
#include "placement/placement.h"

namespace troupe {

// Of what the disk gives a link must give as much, or experts do not come over it (step_fetcher.h).
inline constexpr double kLeastOfDisk = 0.5;
// Of what a link gives experts take as much (calls/expert_fetch.h).
inline constexpr double kFetchShare = 0.5;

// How many experts a step reads: as many as the disk gives in a tenth of a second, from 2 to 16.
// Passes wait for none of them.
std::uint32_t ExpertsAtOnce(double disk_bytes_per_second, std::uint64_t expert_bytes);

// On the way from what nodes hold by `from`, whose experts it keeps as they are now. Both others
// must outlive it.
ComingSpeed ComingSpeedOf(const PlanFacts& facts, const PlacementProblem& problem,
                          const Placement& from);

}  // namespace troupe
