// Whether an expert may leave a node's memory: not while nobody else keeps it and somebody is to
// hold it. Nodes swap experts without asking each other, so each tells what it holds with the epoch
// of the plan that it follows, and counts only on what others keep by the plan that it follows
// itself. Pure. docs/design/cluster.md has the argument that an expert cannot leave all memories.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cluster/plan/cluster_plan.h"
#include "cluster/wire/expert_bits.h"

namespace troupe {

// As a node knows it.
struct OtherNode {
  std::string_view name;
  bool here = false;                           // it can be asked
  bool awaited = false;                        // it is here, or has not been away for long
  std::uint64_t epoch = 0;                     // of the plan by which it holds what follows
  const ExpertBits* held = nullptr;            // null: not known
  const ClusterPlan::Node* planned = nullptr;  // in the own plan; null: it is not in it
};

// `self` is to let it go by the plan of `epoch`. Of several that are, and where none of those that
// are to hold it does yet, the one with the first name keeps it.
bool MayLeave(ExpertId id, std::string_view self, std::uint64_t epoch,
              std::span<const OtherNode> others);

// `self` is to hold it by that plan, and may do without it for a while: as many others as are
// demanded, which are to hold it and come before this node by name, do.
bool MayRest(ExpertId id, std::string_view self, std::uint64_t epoch, std::uint32_t copies,
             std::span<const OtherNode> others);

}  // namespace troupe
