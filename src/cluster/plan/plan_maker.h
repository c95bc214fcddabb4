// Makes a plan of what nodes report, by any placer of placement/. Where all memory together cannot
// hold all experts, what users activate least is held by nobody: the nodes' disks have it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/plan/cluster_plan.h"
#include "placement/placer.h"

namespace troupe {

struct NodeFacts {
  std::string name;
  std::uint32_t most_held = 0;         // experts that its memory can hold for everybody
  std::vector<double> activations;     // by the grid's index: what its own users activate; or empty
  double speed = 1;                    // of computing
  double load_bytes_per_second = 1e9;  // from its disk

  bool operator==(const NodeFacts&) const = default;
};

struct PlanFacts {
  ExpertGrid grid;
  std::uint32_t first_layer = 0;        // that has experts; all behind it have
  std::uint32_t experts_per_token = 1;  // of a layer
  std::uint64_t expert_bytes = 1;
  std::vector<NodeFacts> nodes;
  Link link;  // between any two
  // Of each expert, on different nodes: what is used most comes first where memory is short.
  std::uint32_t copies = 1;

  bool operator==(const PlanFacts&) const = default;
};

// The problem that a placer is given. Its last server is nobody's: the disks', if memory is short.
PlacementProblem ProblemOf(const PlanFacts& facts);

Result<ClusterPlan> MakePlan(const PlanFacts& facts, const Placer& placer, std::uint64_t epoch);

// Whether going over to `to` pays by the paper's Eq. 4, or other nodes take part in it.
bool PaysToAdopt(const PlanFacts& facts, const ClusterPlan& from, const ClusterPlan& to,
                 double seconds_per_remote_call);

}  // namespace troupe
