#include "placement/optimum.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "placement/device_packing.h"
#include "placement/placer.h"
#include "placement/remote_calls.h"

namespace troupe {
namespace {

// The Lagrangian of Eq. 2 with a multiplier for each expert's coverage: servers then choose for
// themselves, and a knapsack that may cut its last item is never worse than one that may not.
class Relaxation {
 public:
  explicit Relaxation(const PlacementProblem& problem)
      : problem_(problem), multipliers_(problem.experts.size(), 0), copies_(multipliers_) {
    std::uint64_t grain = 0;
    for (ExpertIndex e = 0; e < problem.experts.size(); ++e) {
      grain = std::gcd(grain, problem.experts.BytesOf(e));
    }
    for (const PlacementServer& server : problem.servers) {
      std::uint64_t usable = 0;  // no set of experts ends between two grains of a device
      for (const PlacementDevice& device : server.devices) {
        usable += device.memory / grain * grain;
      }
      usable_.push_back(static_cast<double>(usable));
    }
  }

  // Bounds the local activations at the current multipliers; notes how often each expert was
  // chosen.
  double UpperBound() {
    std::fill(copies_.begin(), copies_.end(), 0.0);
    double bound = -std::accumulate(multipliers_.begin(), multipliers_.end(), 0.0);
    for (std::uint32_t n = 0; n < problem_.server_count(); ++n) bound += FillServer(n, nullptr);
    return bound;
  }
  // A subgradient step: an expert's value rises if no server chose it, and falls if many did.
  void Step(double length) {
    double norm = 0;
    for (ExpertIndex e = 0; e < copies_.size(); ++e) norm += std::pow(1 - copies_[e], 2);
    if (norm == 0) return;
    for (ExpertIndex e = 0; e < copies_.size(); ++e) {
      multipliers_[e] = std::max(0.0, multipliers_[e] + length / norm * (1 - copies_[e]));
    }
  }
  // What the servers choose, whole experts only.
  HolderTable Choice() {
    HolderTable holders(problem_);
    for (std::uint32_t n = 0; n < problem_.server_count(); ++n) FillServer(n, &holders);
    return holders;
  }
  const std::vector<double>& multipliers() const { return multipliers_; }
  void set_multipliers(std::vector<double> multipliers) { multipliers_ = std::move(multipliers); }

 private:
  // The fractional knapsack of one server, greedy by value per byte: with holders, whole experts
  // only.
  double FillServer(std::uint32_t n, HolderTable* holders) {
    const auto& f = problem_.servers[n].activations;
    std::vector<std::pair<double, ExpertIndex>> order;  // value a byte
    for (ExpertIndex e = 0; e < f.size(); ++e) {
      const double value = f[e] + multipliers_[e];
      if (value > 0) {
        order.emplace_back(-value / static_cast<double>(problem_.experts.BytesOf(e)), e);
      }
    }
    std::sort(order.begin(), order.end());
    double value = 0;
    double left = usable_[n];
    for (const auto& [density, e] : order) {
      const auto bytes = static_cast<double>(problem_.experts.BytesOf(e));
      const double share = std::min(1.0, left / bytes);
      if (holders != nullptr) {
        if (share < 1) continue;
        holders->Add(n, e);
      } else if (share <= 0) {
        break;
      }
      value += share * (f[e] + multipliers_[e]);
      copies_[e] += share;
      left -= share * bytes;
    }
    return value;
  }

  const PlacementProblem& problem_;
  std::vector<double> multipliers_;
  std::vector<double> copies_;  // chosen, by expert; experts cut by the knapsack count in part
  std::vector<double> usable_;  // bytes, by server
};

struct Bound {
  double remote_calls = 0;
  std::vector<double> multipliers;  // that gave it
};

Bound TightestBound(const PlacementProblem& problem) {
  const double cells = static_cast<double>(problem.server_count()) * problem.experts.size();
  // A step sorts every cell; some tens of millions of them are a few seconds.
  const int steps = static_cast<int>(std::clamp(2e7 / cells, 3.0, 300.0));
  double all = 0;
  for (const PlacementServer& server : problem.servers) {
    all = std::accumulate(server.activations.begin(), server.activations.end(), all);
  }
  Relaxation relaxation(problem);
  Bound best{.remote_calls = 0, .multipliers = relaxation.multipliers()};
  for (int step = 0; step < steps; ++step) {
    const double remote = all - relaxation.UpperBound();
    if (remote > best.remote_calls) {
      best = {.remote_calls = remote, .multipliers = relaxation.multipliers()};
    }
    // Falling steps whose sum diverges: they converge, and can reach any multiplier.
    relaxation.Step(all / (10.0 + step));
  }
  return best;
}

Result<RemoteCallOptimum> ApproachUnequalSizes(const PlacementProblem& problem) {
  const Bound bound = TightestBound(problem);
  Relaxation relaxation(problem);
  relaxation.set_multipliers(bound.multipliers);
  RemoteCallOptimum optimum{.lower_bound = bound.remote_calls};
  Result<Placement> priced = PackDevices(problem, relaxation.Choice());
  if (priced.ok()) FillFreeMemory(problem, *priced);
  Result<Placement> counted = MakeDanceMoe()->Place(problem);
  if (!priced.ok() && !counted.ok()) return priced.status();
  const bool take_priced =
      !counted.ok() || (priced.ok() && CountRemoteCalls(problem, *priced).remote <=
                                           CountRemoteCalls(problem, *counted).remote);
  optimum.placement = take_priced ? *std::move(priced) : *std::move(counted);
  return optimum;
}

class OptimumPlacer final : public Placer {
 public:
  std::string_view Name() const override { return "optimum"; }
  Result<Placement> Place(const PlacementProblem& problem) const override {
    TROUPE_ASSIGN_OR_RETURN(RemoteCallOptimum optimum, MinimizeRemoteCalls(problem));
    return std::move(optimum.placement);
  }
};

}  // namespace

double RemoteCallBound(const PlacementProblem& problem) {
  return TightestBound(problem).remote_calls;
}

Result<RemoteCallOptimum> MinimizeRemoteCalls(const PlacementProblem& problem) {
  if (!problem.experts.equal_bytes()) return ApproachUnequalSizes(problem);
  const HolderTable holders = SolveEqualSizes(problem);
  RemoteCallOptimum optimum{.lower_bound = CountRemoteCalls(problem, holders).remote,
                            .exact = true};
  TROUPE_ASSIGN_OR_RETURN(optimum.placement, PackDevices(problem, holders));
  // Slots from which no user of the server gains get experts that other servers may call.
  FillFreeMemory(problem, optimum.placement);
  return optimum;
}

std::unique_ptr<Placer> MakeOptimumPlacer() { return std::make_unique<OptimumPlacer>(); }

}  // namespace troupe
