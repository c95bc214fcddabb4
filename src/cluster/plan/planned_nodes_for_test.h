// Two nodes of which each wants what the other does not, and a plan for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "cluster/plan/plan_maker.h"

namespace troupe {

inline std::vector<double> Uses(const PlanFacts& facts, std::set<std::uint32_t> experts) {
  std::vector<double> uses(facts.grid.Count());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    uses[i] = experts.contains(static_cast<std::uint32_t>(i % facts.grid.experts)) ? 10 : 1;
  }
  return uses;
}

inline PlanFacts TwoPlannedNodes(std::uint32_t each) {
  PlanFacts facts{
      .model = "cafe",
      .grid = {.layers = 3, .experts = 8},
      .first_layer = 1,
      .experts_per_token = 2,
      .expert_bytes = 1000,
      .nodes = {},
      .links = {.usual = {.latency_seconds = 1e-4, .bytes_per_second = 1e8}, .pairs = {}},
      .fetch_bytes_per_second = {}};
  facts.nodes = {{.name = "a", .most_held = each, .activations = Uses(facts, {0, 1, 2, 3})},
                 {.name = "b", .most_held = each, .activations = Uses(facts, {4, 5, 6, 7})}};
  return facts;
}

inline ClusterPlan PlanOf(const PlanFacts& facts, const char* placer = "dancemoe") {
  return MakePlan(facts, *MakePlacer(placer, {}).value()).value();
}

}  // namespace troupe
