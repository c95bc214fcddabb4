#include "cluster/plan/plan_maker.h"

#include <algorithm>

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
    problem.servers.push_back(
        {.name = "",
         .devices = {{.memory = (problem.experts.size() - room) * facts.expert_bytes,
                      .speed = 1,
                      .load_bytes_per_second = 1}},
         .activations = WantsTheLeastUsed(problem)});
  }
  return problem;
}

Result<ClusterPlan> MakePlan(const PlanFacts& facts, const Placer& placer, std::uint64_t epoch) {
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
