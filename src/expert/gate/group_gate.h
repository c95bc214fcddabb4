// A gate over groups of experts (EC2MoE's E2), as it is learned and kept: of each layer its groups,
// and a matrix that says of a gate's input how much of the token's weight each group has. Within a
// group the router's own rows decide. Running it is model/group_gate.h's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "expert/gate/expert_groups.h"

namespace troupe {

struct GroupGateLayer {
  std::uint32_t layer = 0;
  ExpertGroups groups;
  std::vector<float> weights;  // [group][width]
  std::vector<float> bias;     // [group]

  std::uint32_t SmallestGroup() const;

  bool operator==(const GroupGateLayer&) const = default;
};

struct GroupGate {
  std::uint32_t width = 0, experts = 0, groups = 0;
  std::vector<GroupGateLayer> layers;  // those with experts, rising

  // The number of groups that have at least `top_k` experts in every layer.
  std::uint32_t LeastLooked(std::uint32_t top_k) const;

  bool operator==(const GroupGate&) const = default;
};

// Ok if numbers and sizes fit together, and all are finite.
Status Validate(const GroupGate& gate);

// What a token's chosen groups are used for. Both come from p = softmax(W x + b) over groups, of
// which the best are looked into.
enum class GroupFusion {
  kJoint,   // the experts of all groups looked into share what p gives these groups together
  kProduct  // each group's experts share what p gives their group: the paper's Eq. 7
};

// How a router is replaced: "exact", or "groups:looked=2", with ":fusion=product" for the other
// fusion.
struct GateChoice {
  bool by_groups = false;
  std::uint32_t looked = 0;  // groups; 0: as many as the file says
  GroupFusion fusion = GroupFusion::kJoint;

  bool exact() const { return !by_groups; }
  bool operator==(const GateChoice&) const = default;
};

std::string ToString(const GateChoice& choice);

}  // namespace troupe
