// DanceMoE: Algorithm 1 (layer_counts.h) says how many, Algorithm 2, here, which: a server's most
// frequent experts, then every expert that no server took replaces a duplicate somewhere.
//
// What the paper leaves open in Algorithm 2, and what is done here (docs/design/placement.md):
// - Printed inside the loop over servers, the second loop would see only the servers before it as
//   holders; it runs once all servers have their first choice.
// - A duplicate is an expert that another server holds as well. Servers without any are passed
//   over: they have nothing that may be replaced.
// - "Most frequent" and "least used" go by the frequencies of the server at hand. Ties go to the
//   lower number, of experts as of servers.
// - Servers are sorted once a pass of the while loop, as printed, not after every replacement.
#include <algorithm>
#include <numeric>
#include <optional>

#include "placement/device_packing.h"
#include "placement/layer_counts.h"
#include "placement/placer.h"

namespace troupe {
namespace {

class DanceMoe final : public Placer {
 public:
  std::string_view Name() const override { return "dancemoe"; }
  Result<Placement> Place(const PlacementProblem& problem) const override;
};

// The `count` most frequent of a layer.
void TakeMostFrequent(const PlacementProblem& problem, std::uint32_t n, std::uint32_t layer,
                      std::uint32_t count, HolderTable& holders) {
  const auto& f = problem.servers[n].activations;
  std::vector<ExpertIndex> preference(problem.experts.CountIn(layer));
  std::iota(preference.begin(), preference.end(), problem.experts.FirstOf(layer));
  const auto last = preference.begin() + count;
  std::partial_sort(preference.begin(), last, preference.end(), [&](ExpertIndex a, ExpertIndex b) {
    return f[a] != f[b] ? f[a] > f[b] : a < b;
  });
  for (auto e = preference.begin(); e != last; ++e) holders.Add(n, *e);
}

class LayerCoverage {
 public:
  LayerCoverage(const PlacementProblem& problem, std::uint32_t layer, HolderTable& holders)
      : problem_(problem),
        first_(problem.experts.FirstOf(layer)),
        end_(first_ + problem.experts.CountIn(layer)),
        holders_(holders) {
    for (ExpertIndex e = first_; e < end_; ++e) {
      if (holders.CopiesOf(e) == 0) unassigned_.push_back(e);
    }
  }

  void Repair() {
    bool replaced = true;  // nothing to replace: unequal sizes, left to the packing's repairs
    while (!unassigned_.empty() && replaced) {
      replaced = false;
      for (const std::uint32_t n : ByDuplicates()) {
        if (unassigned_.empty()) break;
        const std::optional<ExpertIndex> least = LeastUsedDuplicate(n);
        if (!least) continue;
        const auto& f = problem_.servers[n].activations;
        const auto most = std::max_element(
            unassigned_.begin(), unassigned_.end(),
            [&](ExpertIndex a, ExpertIndex b) { return f[a] != f[b] ? f[a] < f[b] : a > b; });
        holders_.Remove(n, *least);
        holders_.Add(n, *most);
        unassigned_.erase(most);
        replaced = true;
      }
    }
  }

 private:
  bool IsDuplicate(std::uint32_t n, ExpertIndex e) const {
    return holders_.Holds(n, e) && holders_.CopiesOf(e) > 1;
  }
  std::vector<std::uint32_t> ByDuplicates() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
    for (std::uint32_t n = 0; n < problem_.server_count(); ++n) {
      std::uint32_t duplicates = 0;
      for (ExpertIndex e = first_; e < end_; ++e) duplicates += IsDuplicate(n, e) ? 1 : 0;
      order.emplace_back(duplicates, n);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> servers;
    for (const auto& entry : order) servers.push_back(entry.second);
    return servers;
  }
  std::optional<ExpertIndex> LeastUsedDuplicate(std::uint32_t n) const {
    const auto& f = problem_.servers[n].activations;
    std::optional<ExpertIndex> least;
    for (ExpertIndex e = first_; e < end_; ++e) {
      if (IsDuplicate(n, e) && (!least || f[e] < f[*least])) least = e;
    }
    return least;
  }

  const PlacementProblem& problem_;
  ExpertIndex first_, end_;
  HolderTable& holders_;
  std::vector<ExpertIndex> unassigned_;  // U_l, rising
};

Result<Placement> DanceMoe::Place(const PlacementProblem& problem) const {
  const LayerCounts counts = CountExpertsPerLayer(problem);
  HolderTable holders(problem);
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    for (std::uint32_t layer = 0; layer < problem.experts.layers(); ++layer) {
      TakeMostFrequent(problem, n, layer, counts[n][layer], holders);
    }
  }
  for (std::uint32_t layer = 0; layer < problem.experts.layers(); ++layer) {
    LayerCoverage(problem, layer, holders).Repair();
  }
  TROUPE_ASSIGN_OR_RETURN(Placement placement, PackDevices(problem, holders));
  // Counts of unequal experts leave bytes over; equal ones have used every slot.
  if (!problem.experts.equal_bytes()) FillFreeMemory(problem, placement);
  return placement;
}

}  // namespace

std::unique_ptr<Placer> MakeDanceMoe() { return std::make_unique<DanceMoe>(); }

}  // namespace troupe
