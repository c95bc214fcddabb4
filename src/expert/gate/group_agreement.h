// How well a group gate stands in for a router, on tokens that it was not learned from. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "expert/gate/group_distillation.h"
#include "expert/gate/group_gate.h"

namespace troupe {

// The share of the router's experts that is found by looking into that number of groups.
struct LookedAgreement {
  double joint = 0, product = 0;  // by the way of fusing (GroupFusion)
  // Where the groups are those with the most of the router's own weight: what the division alone
  // loses, however good a gate is.
  double best_groups = 0;

  bool operator==(const LookedAgreement&) const = default;
};

struct GateAgreement {
  double divergence = 0;  // mean, of the router's shares of groups to the gate's, in nats
  double of_nothing = 0;  // the same of a gate that always says the mean shares of these tokens
  std::vector<LookedAgreement> by_looked;  // into 1, 2, ... and all groups

  bool operator==(const GateAgreement&) const = default;
};

// REQUIRES: one token at least, and groups of `top_k` experts in all.
GateAgreement MeasureAgreement(const GateSamples& samples, const GroupGateLayer& gate,
                               std::uint32_t top_k);

}  // namespace troupe
