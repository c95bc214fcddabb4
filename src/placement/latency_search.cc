// Local search under the latency objective: from the best of what the placers that leave nothing to
// chance have placed, one expert of a server gives its place to another as long as the estimate
// falls. Between two looks at the queues they are taken as they were, which makes a layer's time
// independent of the others': the gain of an expert that comes in one layer and the loss of one
// that goes in another just add.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "placement/device_packing.h"
#include "placement/latency_objective.h"
#include "placement/optimum.h"
#include "placement/placer.h"

namespace troupe {
namespace {

constexpr int kRounds = 8;  // looks at the queues
// Evaluations of a layer of a server; more would not finish in seconds with hundreds of servers.
constexpr std::uint64_t kMostCells = 25'000'000;
constexpr std::uint64_t kMostFlowCells = 8'000'000;  // servers times experts
// With more servers than this a swap's cost ignores servers that from now on call elsewhere. Each
// has other holders to call, and evaluating all of them would leave time for a few swaps only.
constexpr std::uint32_t kFewServers = 16;
constexpr double kLeastGain = 2e-6;  // of the whole; smaller steps would go on for long
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kCandidates = 2;  // of a layer, to come and to go

struct Change {
  ExpertIndex expert = 0;
  double delta = std::numeric_limits<double>::infinity();  // of the objective
};

struct Swap {
  ExpertIndex out = 0, in = 0;
  double delta = 0;
};

class LatencySearch {
 public:
  LatencySearch(const PlacementProblem& problem, const LatencyModel& model, Placement start)
      : problem_(problem),
        objective_(problem, model),
        placement_(std::move(start)),
        holders_(problem, placement_),
        routes_(problem, holders_),
        congestion_(objective_.Measure(routes_)),
        standing_(static_cast<std::size_t>(problem.server_count()) * problem.experts.layers(),
                  kUnknown) {}

  // Placement and estimate of the best state between two looks at the queues.
  std::pair<Placement, double> Run();

 private:
  double Layer(std::uint32_t n, std::uint32_t layer) {
    cells_ += problem_.experts.CountIn(layer);
    return congestion_.home_weight[n] * objective_.LayerSeconds(n, layer, routes_, congestion_);
  }
  // The same for the placement as it stands, computed once.
  double& Standing(std::uint32_t n, std::uint32_t layer) {
    double& seconds = standing_[n * problem_.experts.layers() + layer];
    if (std::isnan(seconds)) seconds = Layer(n, layer);
    return seconds;
  }
  void ForgetStanding(std::uint32_t layer) {
    for (std::uint32_t n = 0; n < problem_.server_count(); ++n) {
      standing_[n * problem_.experts.layers() + layer] = kUnknown;
    }
  }
  bool Exhausted() const { return cells_ > kMostCells; }

  // The objective's change if `server` gains or loses experts of one layer; leaves all as it was.
  double DeltaOf(std::uint32_t server, std::optional<ExpertIndex> out,
                 std::optional<ExpertIndex> in);
  void Toggle(std::uint32_t server, std::optional<ExpertIndex> out, std::optional<ExpertIndex> in);
  bool MayGo(std::uint32_t server, ExpertIndex e) const {
    return holders_.Holds(server, e) && holders_.CopiesOf(e) > 1;
  }
  void Rank(std::uint32_t server, std::uint32_t layer);
  std::optional<Swap> BestSwap(std::uint32_t server);
  void Apply(std::uint32_t server, const Swap& swap);
  bool ImproveServer(std::uint32_t server);

  const PlacementProblem& problem_;
  LatencyObjective objective_;
  Placement placement_;
  HolderTable holders_;
  CallRoutes routes_;
  Congestion congestion_;
  std::vector<double> standing_;  // [server][layer]; kUnknown: to be computed
  std::uint64_t cells_ = 0;
  double seconds_ = 0;  // the estimate at the start: small gains are relative to it
  // Of the current server, by layer.
  std::vector<std::vector<Change>> comers_, goers_;
  std::vector<Swap> inside_;  // best swap within the layer
};

void LatencySearch::Toggle(std::uint32_t server, std::optional<ExpertIndex> out,
                           std::optional<ExpertIndex> in) {
  if (out) {
    holders_.Remove(server, *out);
    routes_.Renew(*out, holders_);
  }
  if (in) {
    holders_.Add(server, *in);
    routes_.Renew(*in, holders_);
  }
  cells_ += 2 * problem_.server_count();
}

double LatencySearch::DeltaOf(std::uint32_t server, std::optional<ExpertIndex> out,
                              std::optional<ExpertIndex> in) {
  const std::uint32_t layer = problem_.experts.LayerOf(out ? *out : *in);
  // The servers concerned: the server itself, those that call it for what goes, and those that will
  // call it for what comes.
  std::vector<std::uint32_t> concerned = {server};
  const auto note_callers = [&](ExpertIndex e) {
    for (std::uint32_t n = 0; n < problem_.server_count(); ++n) {
      if (n != server && routes_.HostOf(n, e) == server) concerned.push_back(n);
    }
  };
  const bool few = problem_.server_count() <= kFewServers;
  if (out && few) note_callers(*out);
  Toggle(server, out, in);
  if (in && few) note_callers(*in);
  std::sort(concerned.begin(), concerned.end());
  concerned.erase(std::unique(concerned.begin(), concerned.end()), concerned.end());
  double delta = 0;
  for (const std::uint32_t n : concerned) delta += Layer(n, layer);
  Toggle(server, in, out);
  for (const std::uint32_t n : concerned) delta -= Standing(n, layer);
  return delta;
}

// Finds a layer's best candidates to come and to go. Only the most activated missing experts and
// the least activated duplicates are evaluated: an evaluation costs a pass over the layer.
void LatencySearch::Rank(std::uint32_t server, std::uint32_t layer) {
  const auto& f = problem_.servers[server].activations;
  std::vector<ExpertIndex> in, out;
  const ExpertIndex first = problem_.experts.FirstOf(layer);
  for (ExpertIndex e = first; e < first + problem_.experts.CountIn(layer); ++e) {
    if (!holders_.Holds(server, e)) in.push_back(e);
    if (MayGo(server, e)) out.push_back(e);
  }
  std::stable_sort(in.begin(), in.end(), [&](auto a, auto b) { return f[a] > f[b]; });
  std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) { return f[a] < f[b]; });
  in.resize(std::min(in.size(), kCandidates));
  out.resize(std::min(out.size(), kCandidates));
  comers_[layer].clear();
  goers_[layer].clear();
  for (const ExpertIndex e : in) comers_[layer].push_back({e, DeltaOf(server, std::nullopt, e)});
  for (const ExpertIndex e : out) goers_[layer].push_back({e, DeltaOf(server, e, std::nullopt)});
  inside_[layer] = Swap{};
  if (in.empty() || out.empty()) return;
  if (problem_.experts.BytesOf(in[0]) > problem_.experts.BytesOf(out[0])) return;
  inside_[layer] = {.out = out[0], .in = in[0], .delta = DeltaOf(server, out[0], in[0])};
}

// Pairs candidates of different layers by adding their changes, which is exact while the queues are
// taken as constant. Within a layer the changes depend on each other, so that pair was evaluated.
std::optional<Swap> LatencySearch::BestSwap(std::uint32_t server) {
  Swap best;
  for (const Swap& swap : inside_) {
    if (swap.delta < best.delta) best = swap;
  }
  for (std::uint32_t l = 0; l < comers_.size(); ++l) {
    for (const Change& comer : comers_[l]) {
      for (std::uint32_t other = 0; other < goers_.size(); ++other) {
        if (other == l) continue;
        for (const Change& goer : goers_[other]) {
          const double delta = comer.delta + goer.delta;
          if (delta >= best.delta || !MayGo(server, goer.expert)) continue;
          if (problem_.experts.BytesOf(comer.expert) > problem_.experts.BytesOf(goer.expert)) {
            continue;
          }
          best = {.out = goer.expert, .in = comer.expert, .delta = delta};
        }
      }
    }
  }
  if (best.delta >= 0) return std::nullopt;
  return best;
}

void LatencySearch::Apply(std::uint32_t server, const Swap& swap) {
  Toggle(server, swap.out, swap.in);
  ForgetStanding(problem_.experts.LayerOf(swap.out));
  ForgetStanding(problem_.experts.LayerOf(swap.in));
  for (std::vector<ExpertIndex>& device : placement_.experts[server]) {
    if (!std::binary_search(device.begin(), device.end(), swap.out)) continue;
    RemoveFrom(device, swap.out);
    AddTo(device, swap.in);
    return;
  }
  TROUPE_CHECK(false);
}

bool LatencySearch::ImproveServer(std::uint32_t server) {
  const std::uint32_t layers = problem_.experts.layers();
  comers_.assign(layers, {});
  goers_.assign(layers, {});
  inside_.assign(layers, {});
  for (std::uint32_t l = 0; l < layers && !Exhausted(); ++l) Rank(server, l);
  bool improved = false;
  while (!Exhausted()) {
    const std::optional<Swap> swap = BestSwap(server);
    if (!swap || -swap->delta < kLeastGain * seconds_ * objective_.passes_per_second()) break;
    Apply(server, *swap);
    improved = true;
    const std::uint32_t a = problem_.experts.LayerOf(swap->out);
    const std::uint32_t b = problem_.experts.LayerOf(swap->in);
    Rank(server, a);
    if (b != a) Rank(server, b);
  }
  return improved;
}

std::pair<Placement, double> LatencySearch::Run() {
  Placement best = placement_;
  double least = objective_.Evaluate(holders_).seconds;
  seconds_ = least;
  for (int round = 0; round < kRounds && !Exhausted(); ++round) {
    bool improved = false;
    for (std::uint32_t n = 0; n < problem_.server_count(); ++n) improved |= ImproveServer(n);
    if (!improved) break;
    congestion_ = objective_.Measure(routes_);
    std::fill(standing_.begin(), standing_.end(), kUnknown);
    const double seconds = objective_.Evaluate(holders_).seconds;
    if (seconds < least) {
      least = seconds;
      best = placement_;
    }
  }
  return {std::move(best), least};
}

class LatencyPlacer final : public Placer {
 public:
  explicit LatencyPlacer(LatencyModel model) : model_(std::move(model)) {}
  std::string_view Name() const override { return "latency"; }
  Result<Placement> Place(const PlacementProblem& problem) const override {
    for (const std::size_t servers : {model_.passes.size(), model_.prompts_per_second.size()}) {
      if (servers == 0 || servers == problem.servers.size()) continue;
      return InvalidArgument("passes of {} servers for a problem with {}", servers,
                             problem.servers.size());
    }
    TROUPE_ASSIGN_OR_RETURN(Placement start, MakeDanceMoe()->Place(problem));
    const LatencyObjective objective(problem, model_);
    double least = objective.Evaluate(HolderTable(problem, start)).seconds;
    const auto start_here_if_better = [&](Placement placement) {
      const double seconds = objective.Evaluate(HolderTable(problem, placement)).seconds;
      if (seconds >= least) return;
      least = seconds;
      start = std::move(placement);
    };
    // They may find no room for experts of unequal sizes where DanceMoE's does.
    for (const auto& placer : {MakeEplb(), MakeSmartMoe()}) {
      if (Result<Placement> placed = placer->Place(problem); placed.ok()) {
        start_here_if_better(*std::move(placed));
      }
    }
    // Ten thousand servers are past what the flow solves within seconds (bench/placement).
    if (std::uint64_t{problem.server_count()} * problem.experts.size() <= kMostFlowCells) {
      TROUPE_ASSIGN_OR_RETURN(RemoteCallOptimum optimum, MinimizeRemoteCalls(problem));
      start_here_if_better(std::move(optimum.placement));
    }
    Placement found = LatencySearch(problem, model_, std::move(start)).Run().first;
    if (!problem.experts.equal_bytes()) return found;
    return PackDevices(problem, HolderTable(problem, found));  // spreads load over devices anew
  }

 private:
  LatencyModel model_;
};

}  // namespace

std::unique_ptr<Placer> MakeLatencySearch(const LatencyModel& model) {
  return std::make_unique<LatencyPlacer>(model);
}

}  // namespace troupe
