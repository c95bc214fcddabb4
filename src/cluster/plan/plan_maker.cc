#include "cluster/plan/plan_maker.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "placement/migration.h"

namespace troupe {
namespace {

std::vector<double> ActivationsOf(const NodeFacts& node, const PlanFacts& facts) {
  const std::size_t skipped = std::size_t{facts.first_layer} * facts.grid.experts;
  const std::size_t experts = facts.grid.Count() - skipped;
  if (node.activations.empty()) return std::vector<double>(experts, 1.0);
  return {node.activations.begin() + static_cast<std::ptrdiff_t>(skipped), node.activations.end()};
}

// So little that no node gives anything up for it.
std::vector<double> WantsTheLeastUsed(const PlacementProblem& problem) {
  constexpr double kLittle = 1e-9;
  std::vector<double> all(problem.experts.size());
  for (const PlacementServer& server : problem.servers) {
    for (std::size_t e = 0; e < all.size(); ++e) all[e] += server.activations[e];
  }
  const double most = *std::ranges::max_element(all);
  for (double& uses : all) uses = kLittle * (most - uses);
  return all;
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

struct Candidate {
  ExpertId id;
  double uses = 0;  // of all nodes
};

// What all nodes activate most comes first.
std::vector<Candidate> ByUse(const PlanFacts& facts) {
  std::vector<Candidate> all;
  for (std::uint32_t layer = facts.first_layer; layer < facts.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < facts.grid.experts; ++expert) {
      Candidate one{.id = {layer, expert}};
      for (const NodeFacts& node : facts.nodes) {
        if (!node.activations.empty()) one.uses += node.activations[facts.grid.Index(one.id)];
      }
      all.push_back(one);
    }
  }
  std::ranges::stable_sort(all, std::greater(), &Candidate::uses);
  return all;
}

// Fills what memory is left: each further copy goes where the expert is used most.
void AddCopies(const PlanFacts& facts, ClusterPlan& plan) {
  const std::vector<Candidate> all = ByUse(facts);
  const auto uses = [&](std::size_t node, ExpertId id) {
    const std::vector<double>& activations = facts.nodes[node].activations;
    return activations.empty() ? 1.0 : activations[facts.grid.Index(id)];
  };
  const auto holds = [&](std::size_t node, ExpertId id) {
    return std::ranges::binary_search(plan.nodes[node].held[id.layer], id.expert);
  };
  for (std::uint32_t copy = 1; copy <= facts.copies; ++copy) {
    for (const Candidate& one : all) {
      std::uint32_t there = 0;
      std::optional<std::size_t> best;
      for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
        if (holds(node, one.id)) {
          ++there;
        } else if (plan.nodes[node].count() < facts.nodes[node].most_held &&
                   (!best || uses(node, one.id) > uses(*best, one.id))) {
          best = node;
        }
      }
      if (there >= copy || !best) continue;
      std::vector<std::uint32_t>& held = plan.nodes[*best].held[one.id.layer];
      held.insert(std::ranges::upper_bound(held, one.id.expert), one.id.expert);
    }
  }
}

}  // namespace

PlacementProblem ProblemOf(const PlanFacts& facts) {
  const std::uint32_t layers = facts.grid.layers - facts.first_layer;
  PlacementProblem problem{
      .experts = ExpertTable::Equal(layers, facts.grid.experts, Bytes(facts.expert_bytes)),
      .experts_per_token = facts.experts_per_token,
      .servers = {},
      .links = {.usual = facts.link, .pairs = {}}};
  std::uint64_t room = 0;
  for (const NodeFacts& node : facts.nodes) {
    room += node.most_held;
    problem.servers.push_back({.name = node.name,
                               .devices = {{.memory = node.most_held * facts.expert_bytes,
                                            .speed = node.speed,
                                            .load_bytes_per_second = node.load_bytes_per_second}},
                               .activations = ActivationsOf(node, facts)});
  }
  if (room < problem.experts.size()) {
    constexpr double kAtOnce = 1e15;  // what is on a disk and nowhere else is not moved there
    problem.servers.push_back(
        {.name = "",
         .devices = {{.memory = (problem.experts.size() - room) * facts.expert_bytes,
                      .speed = 1,
                      .load_bytes_per_second = kAtOnce}},
         .activations = WantsTheLeastUsed(problem)});
  }
  return problem;
}

Result<ClusterPlan> MakePlan(const PlanFacts& facts, const Placer& placer, std::uint64_t epoch) {
  if (facts.copies > 1) {
    PlanFacts once = facts;
    once.copies = 1;
    for (NodeFacts& node : once.nodes) node.most_held /= facts.copies;
    TROUPE_ASSIGN_OR_RETURN(ClusterPlan plan, MakePlan(once, placer, epoch));
    AddCopies(facts, plan);
    return plan;
  }
  const PlacementProblem problem = ProblemOf(facts);
  TROUPE_RETURN_IF_ERROR(Validate(problem));
  TROUPE_ASSIGN_OR_RETURN(const Placement placement, placer.Place(problem));
  const HolderTable holders(problem, placement);
  ClusterPlan plan{.epoch = epoch, .nodes = {}};
  for (std::uint32_t server = 0; server < facts.nodes.size(); ++server) {
    ClusterPlan::Node node{.name = facts.nodes[server].name, .held = {}};
    node.held.resize(facts.grid.layers);
    for (const ExpertIndex e : holders.On(server)) {
      const ExpertId id = problem.experts.Id(e);
      node.held[id.layer + facts.first_layer].push_back(id.expert);
    }
    plan.nodes.push_back(std::move(node));
  }
  return plan;
}

bool PaysToAdopt(const PlanFacts& facts, const ClusterPlan& from, const ClusterPlan& to,
                 double seconds_per_remote_call) {
  const auto is_of_these_nodes = [&](const ClusterPlan& plan) {
    return plan.nodes.size() == facts.nodes.size() &&
           std::ranges::all_of(
               facts.nodes, [&](const NodeFacts& node) { return plan.Find(node.name) != nullptr; });
  };
  if (!is_of_these_nodes(from) || !is_of_these_nodes(to)) return true;
  const PlacementProblem problem = ProblemOf(facts);
  return DecideMigration(problem, PlacementOf(from, facts, problem),
                         PlacementOf(to, facts, problem), seconds_per_remote_call)
      .adopt;
}

}  // namespace troupe
