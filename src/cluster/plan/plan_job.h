// What a leader knows when a plan is due, as a value that can be worked on without it: placers take
// seconds with hundreds of nodes, and links must not wait for them. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "cluster/plan/adoption.h"
#include "cluster/plan/cluster_plan.h"
#include "cluster/plan/plan_maker.h"
#include "cluster/plan/plan_order.h"
#include "placement/latency_model.h"

namespace troupe {

struct PlanJob {
  std::string placer;
  PlanFacts facts;
  LatencyModel latency;  // what the placer that goes by latency minimises
  double seconds_per_remote_row = 0;
  std::optional<ClusterPlan> current;
  HoldingsNow held;  // of the nodes of `facts`
};

// The new plan, whether it is to be adopted or not.
struct PlanChoice {
  ClusterPlan plan;
  Adoption adoption;
};

Result<PlanChoice> ChoosePlan(const PlanJob& job);

}  // namespace troupe
