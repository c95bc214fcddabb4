// Which node is to keep which experts in memory: what a leader decides and every node carries out.
// The epoch says which of two plans is newer, and travels beside the plan's JSON form
// (docs/formats/cluster-plan.md). A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/expert_grid.h"

namespace troupe {

struct ClusterPlan {
  struct Node {
    std::string name;
    // By layer of the model: the experts it holds, rising.
    std::vector<std::vector<std::uint32_t>> held;
    // In which order experts come and go where the plan was made, the first one first. What is not
    // among them, as a node held something else by then, follows layer by layer.
    std::vector<ExpertId> come, go;

    std::size_t count() const;
    bool Wants(ExpertId id) const;
    bool operator==(const Node&) const = default;
  };

  std::uint64_t epoch = 0;
  std::string model;  // the fingerprint of the model that it is for
  std::vector<Node> nodes;

  const Node* Find(std::string_view name) const;
  // Whether the two of them differ in the order alone.
  bool SaysTheSameAs(const ClusterPlan& other) const;
  bool operator==(const ClusterPlan&) const = default;
};

// All but the epoch. Of the orders as much as makes a text of about kMostPlanBytes, of long ones
// the beginning: what follows is as if it was not named.
inline constexpr std::size_t kMostPlanBytes = std::size_t{700} << 10;
std::string ToJson(const ClusterPlan& plan, ExpertGrid grid);
// The fingerprint that such a text names; empty: none that can be read.
std::string ModelOfPlan(std::string_view text);
// It must be for that model, every expert in the grid, each once a node, and each node once.
Result<ClusterPlan> ParseClusterPlan(std::string_view text, std::string_view model, ExpertGrid grid,
                                     std::uint64_t epoch);

}  // namespace troupe
