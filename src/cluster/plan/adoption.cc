#include "cluster/plan/adoption.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "cluster/plan/coming_speed.h"

namespace troupe {
namespace {

bool IsOfTheseNodes(const PlanFacts& facts, const ClusterPlan& plan) {
  return plan.nodes.size() == facts.nodes.size() &&
         std::ranges::all_of(
             facts.nodes, [&](const NodeFacts& node) { return plan.Find(node.name) != nullptr; });
}

// Of all that are demanded. What memory cannot hold lacks in every plan, and so decides nothing.
std::uint64_t CopiesLacking(const PlanFacts& facts, const ClusterPlan& plan) {
  std::vector<std::uint32_t> holders(facts.grid.Count());
  for (const ClusterPlan::Node& node : plan.nodes) {
    for (std::uint32_t layer = 0; layer < facts.grid.layers; ++layer) {
      for (const std::uint32_t expert : node.held[layer])
        ++holders[facts.grid.Index({layer, expert})];
    }
  }
  std::uint64_t lacking = 0;
  for (std::uint32_t layer = facts.first_layer; layer < facts.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < facts.grid.experts; ++expert) {
      const std::uint32_t held = holders[facts.grid.Index({layer, expert})];
      lacking += facts.copies - std::min(facts.copies, held);
    }
  }
  return lacking;
}

// Of a plan for these very nodes; what nobody holds is the disks'.
Placement PlacementOf(const ClusterPlan& plan, const PlanFacts& facts,
                      const PlacementProblem& problem) {
  Placement placement = Placement::Empty(problem);
  HolderTable held(problem);
  for (std::uint32_t server = 0; server < facts.nodes.size(); ++server) {
    const ClusterPlan::Node& node = *plan.Find(facts.nodes[server].name);
    for (std::uint32_t layer = facts.first_layer; layer < facts.grid.layers; ++layer) {
      for (const std::uint32_t expert : node.held[layer]) {
        const ExpertIndex e = problem.experts.FirstOf(layer - facts.first_layer) + expert;
        held.Add(server, e);
        placement.experts[server][0].push_back(e);
      }
    }
  }
  if (problem.server_count() == facts.nodes.size()) return placement;
  for (ExpertIndex e = 0; e < problem.experts.size(); ++e) {
    if (held.CopiesOf(e) == 0) placement.experts.back()[0].push_back(e);
  }
  return placement;
}

}  // namespace

std::string ToString(const Adoption& adoption) {
  const MigrationDecision& eq4 = adoption.eq4;
  const auto terms = [&eq4](const char* verdict) {
    return fmt::format("{}: remote calls {:.3g} s after and {:.3g} s now, moving {:.3g} s (Eq. 4)",
                       verdict, eq4.seconds_after, eq4.seconds_now, eq4.migration_seconds);
  };
  switch (adoption.why) {
    case Adoption::Why::kFirst:
      return "there was none";
    case Adoption::Why::kOtherNodes:
      return "other nodes take part";
    case Adoption::Why::kTooMuch:
      return fmt::format("node {} was to hold more than its memory can", adoption.node);
    case Adoption::Why::kCopiesLacking:
      return fmt::format("{} copies were lacking, {} are now", adoption.lacking,
                         adoption.still_lacking);
    case Adoption::Why::kPays:
      return terms("it pays");
    case Adoption::Why::kDoesNotPay:
      return terms("another one does not pay");
    case Adoption::Why::kSame:
      break;
  }
  return "another one would say the same";
}

Adoption DecideAdoption(const PlanFacts& facts, const ClusterPlan* from, const ClusterPlan& to,
                        double seconds_per_remote_call) {
  using Why = Adoption::Why;
  if (from == nullptr) return {.why = Why::kFirst};
  if (!IsOfTheseNodes(facts, *from) || !IsOfTheseNodes(facts, to)) return {.why = Why::kOtherNodes};
  for (const NodeFacts& node : facts.nodes) {
    if (from->Find(node.name)->count() > node.most_held) {
      return {.why = Why::kTooMuch, .node = node.name};
    }
  }
  Adoption adoption{.lacking = CopiesLacking(facts, *from),
                    .still_lacking = CopiesLacking(facts, to)};
  if (adoption.still_lacking < adoption.lacking) {
    adoption.why = Why::kCopiesLacking;
    return adoption;
  }
  if (from->SaysTheSameAs(to)) return adoption;
  const PlacementProblem problem = ProblemOf(facts);
  const Placement now = PlacementOf(*from, facts, problem);
  adoption.eq4 = DecideMigration(problem, now, PlacementOf(to, facts, problem),
                                 seconds_per_remote_call, ComingSpeedOf(facts, problem, now));
  adoption.why = adoption.eq4.adopt ? Why::kPays : Why::kDoesNotPay;
  return adoption;
}

}  // namespace troupe
