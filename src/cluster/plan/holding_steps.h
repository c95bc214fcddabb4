// What a node does next on its way from what it holds to what its plan says: some experts of a
// layer to be brought in, or one to be let go to make room. Pure.
//
// Experts come and go in the order of the plan, what it does not name after it, layer by layer. A
// step brings one layer's, so an expert may come before some of other layers that the plan names
// first: as many as four steps bring.
// Only what may go does (leave_rule.h); what may not yet is waited for. Where memory is full, one
// expert comes before another has gone: two full nodes that swap what they hold would wait for each
// other otherwise. With that one slot each nodes cannot all wait, as long as no plan exceeds a
// memory: docs/design/cluster.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "cluster/plan/cluster_plan.h"
#include "expert/expert_grid.h"

namespace troupe {

struct HoldStep {
  std::uint32_t layer = 0;
  std::vector<std::uint32_t> experts;

  bool operator==(const HoldStep&) const = default;
};

struct ReleaseStep {
  ExpertId id;

  bool operator==(const ReleaseStep&) const = default;
};

using HoldingStep = std::variant<HoldStep, ReleaseStep>;

struct HoldingFacts {
  ExpertGrid grid;
  std::vector<std::uint8_t> held;  // by the grid's index: now
  std::uint32_t most_held = 0;
  // How many are held beyond that while experts are swapped: of the cache's slots.
  static constexpr std::uint32_t kSwapSlots = 1;
  // How many experts one step brings in (coming_speed.h).
  std::uint32_t at_once = 2;
  std::function<bool(ExpertId)> may_go;
};

// Nothing: it is done, or waits for other nodes.
std::optional<HoldingStep> NextStep(const ClusterPlan::Node& wanted, const HoldingFacts& facts);

}  // namespace troupe
