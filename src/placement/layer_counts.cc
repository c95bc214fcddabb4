#include "placement/layer_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

namespace troupe {
namespace {

// The state of Algorithm 1: counts, their sums over servers, and the slots that rounding left over.
class Allocation {
 public:
  explicit Allocation(const PlacementProblem& problem);

  void Initialize();
  void CoverFromSpareSlots();
  void CoverByBorrowing();
  void UseSpareSlots();
  LayerCounts Take() && { return std::move(counts_); }

 private:
  bool Lacks(std::uint32_t l) const { return totals_[l] < problem_.experts.CountIn(l); }
  bool IsFull(std::uint32_t n, std::uint32_t l) const {
    return counts_[n][l] >= problem_.experts.CountIn(l);
  }
  void Give(std::uint32_t n, std::uint32_t l) {
    ++counts_[n][l];
    ++totals_[l];
  }
  // The layer to borrow from; layers() if none has more than it needs.
  std::uint32_t RichestLayer() const;

  const PlacementProblem& problem_;
  std::uint32_t layers_;
  LayerCounts counts_;
  std::vector<std::vector<double>> ideal_;  // before rounding
  std::vector<std::uint64_t> totals_;       // by layer
  std::vector<std::uint64_t> spare_;        // slots, by server
  std::vector<std::uint32_t> by_memory_;    // servers, M_n descending
};

std::uint64_t Slots(const PlacementProblem& problem, std::uint32_t n) {
  if (problem.experts.equal_bytes()) return problem.SlotsOf(n);
  const double mean = static_cast<double>(problem.experts.total_bytes()) / problem.experts.size();
  return static_cast<std::uint64_t>(static_cast<double>(problem.servers[n].memory()) / mean);
}

Allocation::Allocation(const PlacementProblem& problem)
    : problem_(problem),
      layers_(problem.experts.layers()),
      totals_(layers_, 0),
      by_memory_(problem.server_count()) {
  std::iota(by_memory_.begin(), by_memory_.end(), 0u);
  std::stable_sort(by_memory_.begin(), by_memory_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return problem.servers[a].memory() > problem.servers[b].memory();
  });
}

void Allocation::Initialize() {
  for (std::uint32_t n = 0; n < problem_.server_count(); ++n) {
    std::vector<double> entropy;
    for (std::uint32_t l = 0; l < layers_; ++l) {
      entropy.push_back(ActivationEntropy(problem_.Activations(n, l)));
    }
    double sum = std::accumulate(entropy.begin(), entropy.end(), 0.0);
    if (sum <= 0) {  // no activations yet: all layers alike
      entropy.assign(layers_, 1.0);
      sum = layers_;
    }
    const std::uint64_t slots =
        std::min<std::uint64_t>(Slots(problem_, n), problem_.experts.size());
    std::vector<double> ideal(layers_);
    std::vector<std::uint32_t> counts(layers_);
    std::uint64_t given = 0;
    for (std::uint32_t l = 0; l < layers_; ++l) {
      ideal[l] = static_cast<double>(slots) * entropy[l] / sum;
      counts[l] = static_cast<std::uint32_t>(
          std::min<double>(std::floor(ideal[l]), problem_.experts.CountIn(l)));
      // Floating point may make the floors of shares add up to one more than there is.
      counts[l] = static_cast<std::uint32_t>(std::min<std::uint64_t>(counts[l], slots - given));
      given += counts[l];
      totals_[l] += counts[l];
    }
    spare_.push_back(slots - given);
    counts_.push_back(std::move(counts));
    ideal_.push_back(std::move(ideal));
  }
}

// Slots that rounding left over cost no other layer anything, so coverage takes these first.
// Servers with more memory give first, as in Algorithm 1.
void Allocation::CoverFromSpareSlots() {
  for (std::uint32_t l = 0; l < layers_; ++l) {
    for (const std::uint32_t n : by_memory_) {
      while (Lacks(l) && spare_[n] > 0 && !IsFull(n, l)) {
        Give(n, l);
        --spare_[n];
      }
    }
  }
}

std::uint32_t Allocation::RichestLayer() const {
  std::uint32_t richest = layers_;
  for (std::uint32_t l = 0; l < layers_; ++l) {
    if (totals_[l] <= problem_.experts.CountIn(l)) continue;
    if (richest == layers_ || totals_[l] > totals_[richest]) richest = l;
  }
  return richest;
}

void Allocation::CoverByBorrowing() {
  for (std::uint32_t l = 0; l < layers_; ++l) {
    while (Lacks(l)) {
      const std::uint32_t from = RichestLayer();
      if (from == layers_) return;  // unequal sizes only: the packing's repairs have to find room
      for (const std::uint32_t n : by_memory_) {
        if (!Lacks(l) || totals_[from] <= problem_.experts.CountIn(from)) break;
        if (counts_[n][from] == 0) continue;
        --counts_[n][from];
        --totals_[from];
        Give(n, l);
      }
    }
  }
}

// The largest-remainder method: each slot left goes to the layer furthest below its ideal count.
void Allocation::UseSpareSlots() {
  for (std::uint32_t n = 0; n < problem_.server_count(); ++n) {
    using Candidate = std::pair<double, std::int64_t>;  // what rounding took, minus the layer
    std::priority_queue<Candidate> candidates;
    const auto push = [&](std::uint32_t l) {
      if (!IsFull(n, l)) candidates.emplace(ideal_[n][l] - counts_[n][l], -std::int64_t{l});
    };
    for (std::uint32_t l = 0; l < layers_; ++l) push(l);
    while (spare_[n] > 0 && !candidates.empty()) {
      const auto l = static_cast<std::uint32_t>(-candidates.top().second);
      candidates.pop();
      Give(n, l);
      --spare_[n];
      push(l);
    }
  }
}

}  // namespace

double ActivationEntropy(std::span<const double> frequencies) {
  const double sum = std::accumulate(frequencies.begin(), frequencies.end(), 0.0);
  if (sum <= 0) return 0;
  double entropy = 0;
  for (const double f : frequencies) {
    if (f > 0) entropy -= f / sum * std::log2(f / sum);
  }
  return std::max(entropy, 0.0);
}

LayerCounts CountExpertsPerLayer(const PlacementProblem& problem) {
  Allocation allocation(problem);
  allocation.Initialize();
  allocation.CoverFromSpareSlots();
  allocation.CoverByBorrowing();
  allocation.UseSpareSlots();
  return std::move(allocation).Take();
}

}  // namespace troupe
