// In which order experts come and go on the way from what nodes hold to what a plan says, by
// placement/migration_order.h: what is used most comes first, and no expert leaves all memories
// while another order would keep it. Pure.
#pragma once

#include <vector>

#include "cluster/plan/cluster_plan.h"
#include "cluster/plan/plan_maker.h"

namespace troupe {

// What the nodes of `facts` hold, in their order: by the grid's index.
using HoldingsNow = std::vector<std::vector<std::uint8_t>>;

// Sets the order in `plan`, which is of the nodes of `facts`.
void OrderPlan(const PlanFacts& facts, const HoldingsNow& now, ClusterPlan& plan);

}  // namespace troupe
