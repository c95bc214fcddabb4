#include "cluster/plan/plan_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "placement/migration_order.h"

namespace troupe {
namespace {

// Its last server is nobody's, the disks', and has room for all: a node may hold less than it
// could.
PlacementProblem OrderProblem(const PlanFacts& facts) {
  PlacementProblem problem = ProblemOf(facts);
  if (problem.server_count() == facts.nodes.size()) {
    problem.servers.push_back(
        {.name = "",
         .devices = {{.memory = 0, .speed = 1, .load_bytes_per_second = 1e15}},
         .activations = std::vector<double>(problem.experts.size())});
  }
  problem.servers.back().devices.front().memory = problem.experts.total_bytes();
  return problem;
}

// What no node holds is the disks'.
template <typename Holds>
Placement PlacementBy(const PlacementProblem& problem, const PlanFacts& facts, const Holds& holds) {
  Placement placement = Placement::Empty(problem);
  for (ExpertIndex e = 0; e < problem.experts.size(); ++e) {
    const ExpertId of_problem = problem.experts.Id(e);
    const ExpertId id{of_problem.layer + facts.first_layer, of_problem.expert};
    bool anywhere = false;
    for (std::size_t node = 0; node < facts.nodes.size(); ++node) {
      if (!holds(node, id)) continue;
      placement.experts[node][0].push_back(e);
      anywhere = true;
    }
    if (!anywhere) placement.experts.back()[0].push_back(e);
  }
  return placement;
}

}  // namespace

void OrderPlan(const PlanFacts& facts, const HoldingsNow& now, ClusterPlan& plan) {
  TROUPE_CHECK(now.size() == facts.nodes.size() && plan.nodes.size() == facts.nodes.size());
  const PlacementProblem problem = OrderProblem(facts);
  // A node with less memory than before lets go by itself what is too much.
  std::vector<std::size_t> room;
  for (const NodeFacts& node : facts.nodes) room.push_back(node.most_held);
  const Placement from = PlacementBy(problem, facts, [&](std::size_t node, ExpertId id) {
    if (now[node][facts.grid.Index(id)] == 0 || room[node] == 0) return false;
    --room[node];
    return true;
  });
  const Placement to = PlacementBy(problem, facts, [&](std::size_t node, ExpertId id) {
    return std::ranges::binary_search(plan.nodes[node].held[id.layer], id.expert);
  });
  for (const MigrationStep& step : OrderMigration(problem, from, to).steps) {
    if (step.server >= facts.nodes.size()) continue;
    const ExpertId of_problem = problem.experts.Id(step.expert);
    ClusterPlan::Node& node = plan.nodes[step.server];
    (step.kind == MigrationStep::Kind::kLoad ? node.come : node.go)
        .push_back({of_problem.layer + facts.first_layer, of_problem.expert});
  }
}

}  // namespace troupe
