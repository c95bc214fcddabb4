// Eq. 2 for equal sizes as a minimum-cost flow. An arc server -> expert carries one copy and costs
// -f_n(e); a server sends at most as many as it has slots, an expert receives at least one.
//
// Most of the N x E arcs cannot matter: a server holds what its users activate most. The solver
// gets those, and for each expert the servers that want it most; then the duals price all other
// arcs, and any that would improve the flow is added, until none does. The result is as exact as
// with all arcs (a flow without arcs of negative reduced cost is optimal) at a fraction of time and
// memory.
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "placement/optimum.h"

namespace troupe {
namespace {

using Graph = lemon::SmartDigraph;
using Cost = std::int64_t;

// Frequencies as integers: the solver is exact on those. 2^36 steps leave potentials room in 64
// bits.
constexpr double kSteps = 0x1p36;

class EqualSizeFlow {
 public:
  EqualSizeFlow(const PlacementProblem& problem, std::uint32_t keenest);
  HolderTable Solve();

 private:
  Cost CostOf(std::uint32_t n, ExpertIndex e) const {
    return -static_cast<Cost>(std::llround(problem_.servers[n].activations[e] * scale_));
  }
  bool IsIn(std::uint32_t n, ExpertIndex e) const {
    return included_[static_cast<std::size_t>(n) * problem_.experts.size() + e] != 0;
  }
  void Include(std::uint32_t n, ExpertIndex e);
  void IncludeFavourites();
  // Runs the simplex on the arcs included so far; then adds those with negative reduced cost. False
  // if there was none: the flow is optimal.
  bool Improve(HolderTable& holders);

  const PlacementProblem& problem_;
  std::uint32_t keenest_;
  double scale_ = 1;
  std::vector<std::uint64_t> slots_;
  std::vector<std::uint8_t> included_;
  std::vector<std::pair<std::uint32_t, ExpertIndex>> arcs_;
};

EqualSizeFlow::EqualSizeFlow(const PlacementProblem& problem, std::uint32_t keenest)
    : problem_(problem),
      keenest_(std::min(keenest, problem.server_count())),
      included_(static_cast<std::size_t>(problem.server_count()) * problem.experts.size()) {
  double most = 0;
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    slots_.push_back(std::min<std::uint64_t>(problem.SlotsOf(n), problem.experts.size()));
    for (const double f : problem.servers[n].activations) most = std::max(most, f);
  }
  if (most > 0) scale_ = kSteps / most;
}

void EqualSizeFlow::Include(std::uint32_t n, ExpertIndex e) {
  included_[static_cast<std::size_t>(n) * problem_.experts.size() + e] = 1;
  arcs_.emplace_back(n, e);
}

void EqualSizeFlow::IncludeFavourites() {
  const std::uint32_t servers = problem_.server_count();
  std::vector<ExpertIndex> experts(problem_.experts.size());
  for (std::uint32_t n = 0; n < servers; ++n) {
    const auto& f = problem_.servers[n].activations;
    std::iota(experts.begin(), experts.end(), 0u);
    const auto last = experts.begin() + static_cast<std::ptrdiff_t>(slots_[n]);
    const auto more = [&](ExpertIndex a, ExpertIndex b) {
      return f[a] != f[b] ? f[a] > f[b] : a < b;
    };
    if (last != experts.end()) std::nth_element(experts.begin(), last, experts.end(), more);
    std::for_each(experts.begin(), last, [&](ExpertIndex e) { Include(n, e); });
  }
  std::vector<std::uint32_t> order(servers);
  for (ExpertIndex e = 0; e < problem_.experts.size(); ++e) {
    std::iota(order.begin(), order.end(), 0u);
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(keenest_);
    std::partial_sort(order.begin(), last, order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Cost cost_a = CostOf(a, e), cost_b = CostOf(b, e);
      return cost_a != cost_b ? cost_a < cost_b : a < b;
    });
    std::for_each(order.begin(), last, [&](std::uint32_t n) {
      if (!IsIn(n, e)) Include(n, e);
    });
  }
}

bool EqualSizeFlow::Improve(HolderTable& holders) {
  const std::uint32_t servers = problem_.server_count(), experts = problem_.experts.size();
  Graph graph;
  graph.reserveNode(static_cast<int>(servers + experts + 1));
  graph.reserveArc(static_cast<int>(arcs_.size() + servers + 2 * experts));
  std::vector<Graph::Node> server_nodes, expert_nodes;
  for (std::uint32_t n = 0; n < servers; ++n) server_nodes.push_back(graph.addNode());
  for (ExpertIndex e = 0; e < experts; ++e) expert_nodes.push_back(graph.addNode());
  const Graph::Node hub = graph.addNode();  // source and sink in one: a circulation

  Graph::ArcMap<int> lower(graph), upper(graph);
  Graph::ArcMap<Cost> cost(graph);
  const auto add = [&](Graph::Node from, Graph::Node to, int least, int most, Cost each) {
    const Graph::Arc arc = graph.addArc(from, to);
    lower[arc] = least;
    upper[arc] = most;
    cost[arc] = each;
    return arc;
  };
  // An expert that no server sends costs more than any chain of exchanges that would bring it in,
  // so it happens only while arcs are lacking.
  const Cost missing = static_cast<Cost>(kSteps) * (servers + 1);
  for (std::uint32_t n = 0; n < servers; ++n) {
    add(hub, server_nodes[n], 0, static_cast<int>(slots_[n]), 0);
  }
  for (ExpertIndex e = 0; e < experts; ++e) {
    add(expert_nodes[e], hub, 1, static_cast<int>(servers), 0);
    add(hub, expert_nodes[e], 0, 1, missing);
  }
  std::vector<Graph::Arc> copies;
  copies.reserve(arcs_.size());
  for (const auto& [n, e] : arcs_) {
    copies.push_back(add(server_nodes[n], expert_nodes[e], 0, 1, CostOf(n, e)));
  }

  lemon::NetworkSimplex<Graph, int, Cost> simplex(graph);
  simplex.lowerMap(lower).upperMap(upper).costMap(cost);
  TROUPE_CHECK(simplex.run() == decltype(simplex)::OPTIMAL);

  std::size_t added = 0;
  for (std::uint32_t n = 0; n < servers; ++n) {
    const Cost of_server = simplex.potential(server_nodes[n]);
    for (ExpertIndex e = 0; e < experts; ++e) {
      if (IsIn(n, e)) continue;
      if (CostOf(n, e) + of_server - simplex.potential(expert_nodes[e]) >= 0) continue;
      Include(n, e);
      ++added;
    }
  }
  if (added > 0) return true;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (simplex.flow(copies[i]) > 0) holders.Add(arcs_[i].first, arcs_[i].second);
  }
  return false;
}

HolderTable EqualSizeFlow::Solve() {
  IncludeFavourites();
  HolderTable holders(problem_);
  while (Improve(holders)) continue;
  return holders;
}

}  // namespace

HolderTable SolveEqualSizes(const PlacementProblem& problem, std::uint32_t keenest) {
  TROUPE_CHECK(problem.experts.equal_bytes().has_value());
  HolderTable holders = EqualSizeFlow(problem, keenest).Solve();
  TROUPE_CHECK(holders.Covers());  // Validate has counted the slots
  return holders;
}

}  // namespace troupe
