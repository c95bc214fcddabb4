#include "cluster/plan/plan_maker.h"

#include <algorithm>
#include <functional>
#include <optional>

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
class CopyAdder {
 public:
  CopyAdder(const PlanFacts& facts, ClusterPlan& plan) : facts_(facts), plan_(plan) {}

  void Run() {
    const std::vector<Candidate> all = ByUse(facts_);
    for (std::uint32_t copy = 1; copy <= facts_.copies; ++copy) {
      for (const Candidate& one : all) {
        if (CopiesOf(one.id) < copy && !AddWhereThereIsRoom(one.id)) MakeRoomFor(one.id);
      }
    }
  }

 private:
  double Uses(std::size_t node, ExpertId id) const {
    const std::vector<double>& activations = facts_.nodes[node].activations;
    return activations.empty() ? 1.0 : activations[facts_.grid.Index(id)];
  }
  bool Holds(std::size_t node, ExpertId id) const {
    return std::ranges::binary_search(plan_.nodes[node].held[id.layer], id.expert);
  }
  bool HasRoom(std::size_t node) const {
    return plan_.nodes[node].count() < facts_.nodes[node].most_held;
  }
  std::uint32_t CopiesOf(ExpertId id) const {
    std::uint32_t copies = 0;
    for (std::size_t node = 0; node < plan_.nodes.size(); ++node) copies += Holds(node, id) ? 1 : 0;
    return copies;
  }
  void Add(std::size_t node, ExpertId id) {
    std::vector<std::uint32_t>& held = plan_.nodes[node].held[id.layer];
    held.insert(std::ranges::upper_bound(held, id.expert), id.expert);
  }

  bool AddWhereThereIsRoom(ExpertId id) {
    std::optional<std::size_t> best;
    for (std::size_t node = 0; node < plan_.nodes.size(); ++node) {
      if (Holds(node, id) || !HasRoom(node)) continue;
      if (!best || Uses(node, id) > Uses(*best, id)) best = node;
    }
    if (best) Add(*best, id);
    return best.has_value();
  }

  // Those with room hold it already: another one gives one of them what that lacks, and takes it.
  void MakeRoomFor(ExpertId id) {
    for (std::size_t roomy = 0; roomy < plan_.nodes.size(); ++roomy) {
      if (!HasRoom(roomy)) continue;
      for (std::size_t other = 0; other < plan_.nodes.size(); ++other) {
        if (other == roomy || Holds(other, id)) continue;
        if (const std::optional<ExpertId> moved = LeastUsedBeyond(other, roomy)) {
          std::erase(plan_.nodes[other].held[moved->layer], moved->expert);
          Add(roomy, *moved);
          return Add(other, id);
        }
      }
    }
  }

  std::optional<ExpertId> LeastUsedBeyond(std::size_t node, std::size_t other) const {
    std::optional<ExpertId> least;
    for (std::uint32_t layer = 0; layer < facts_.grid.layers; ++layer) {
      for (const std::uint32_t expert : plan_.nodes[node].held[layer]) {
        const ExpertId id{layer, expert};
        if (!Holds(other, id) && (!least || Uses(node, id) < Uses(node, *least))) least = id;
      }
    }
    return least;
  }

  const PlanFacts& facts_;
  ClusterPlan& plan_;
};

}  // namespace

PlacementProblem ProblemOf(const PlanFacts& facts) {
  const std::uint32_t layers = facts.grid.layers - facts.first_layer;
  PlacementProblem problem{
      .experts = ExpertTable::Equal(layers, facts.grid.experts, Bytes(facts.expert_bytes)),
      .experts_per_token = facts.experts_per_token,
      .servers = {},
      .links = facts.links};
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

Result<ClusterPlan> MakePlan(const PlanFacts& facts, const Placer& placer) {
  if (facts.copies > 1) {
    PlanFacts once = facts;
    once.copies = 1;
    for (NodeFacts& node : once.nodes) node.most_held /= facts.copies;
    TROUPE_ASSIGN_OR_RETURN(ClusterPlan plan, MakePlan(once, placer));
    CopyAdder(facts, plan).Run();
    return plan;
  }
  const PlacementProblem problem = ProblemOf(facts);
  TROUPE_RETURN_IF_ERROR(Validate(problem));
  TROUPE_ASSIGN_OR_RETURN(const Placement placement, placer.Place(problem));
  const HolderTable holders(problem, placement);
  ClusterPlan plan{.model = facts.model, .nodes = {}};
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

}  // namespace troupe
