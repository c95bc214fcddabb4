// Makes a plan of what nodes report, by any placer of placement/. Where all memory together cannot
// hold all experts, what users activate least is held by nobody: the nodes' disks have it. Pure.
// Whether a plan takes the place of another one is adoption.h's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
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
  std::string model;  // its fingerprint
  ExpertGrid grid;
  std::uint32_t first_layer = 0;        // that has experts; all behind it have
  std::uint32_t experts_per_token = 1;  // of a layer
  std::uint64_t expert_bytes = 1;
  std::vector<NodeFacts> nodes;
  LinkTable links;  // between nodes, by their places in `nodes`
  // Of links by which experts may come, as far as they were measured: the lower place first.
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> fetch_bytes_per_second;
  // Of each expert, on different nodes: what is used most comes first where memory is short.
  std::uint32_t copies = 1;

  bool operator==(const PlanFacts&) const = default;
};

// The problem that a placer is given. Its last server is nobody's: the disks', if memory is short.
PlacementProblem ProblemOf(const PlanFacts& facts);

// Without an epoch: who adopts it gives it one.
Result<ClusterPlan> MakePlan(const PlanFacts& facts, const Placer& placer);

}  // namespace troupe
