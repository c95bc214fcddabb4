// DeepSeek's Expert Parallelism Load Balancer for unequal devices: in every layer the experts with
// the highest load a copy get more copies until all slots are used, then copies go, heaviest first,
// to the device with the least load. It is the original's global policy; its other one, by groups
// of experts that a router chooses first, has nothing to work on without such groups.
// What unequal devices change:
// - A device has slots of a layer in proportion to its memory, and its load is divided by its
//   speed.
// - A copy goes to a server that has none: a second one there would save no remote call. (The
//   original knows only devices; this makes the baseline stronger, not weaker.)
// - More copies than servers are therefore never made.
#include <limits>
#include <numeric>
#include <queue>

#include "placement/device_list.h"
#include "placement/device_packing.h"
#include "placement/placer.h"

namespace troupe {
namespace {

class Eplb final : public Placer {
 public:
  std::string_view Name() const override { return "eplb"; }
  Result<Placement> Place(const PlacementProblem& problem) const override;
};

// [layer][device]: slots, of each device its memory's worth in all, of each layer at least E_l.
std::vector<std::vector<std::uint64_t>> DivideSlots(const PlacementProblem& problem,
                                                    const std::vector<DeviceRoom>& rooms) {
  const std::uint32_t layers = problem.experts.layers();
  const std::uint64_t mean = problem.experts.equal_bytes().value_or(
      std::max<std::uint64_t>(1, problem.experts.total_bytes() / problem.experts.size()));
  std::vector<std::vector<std::uint64_t>> slots(layers, std::vector<std::uint64_t>(rooms.size()));
  std::vector<std::uint64_t> sums(layers, 0);
  for (std::size_t d = 0; d < rooms.size(); ++d) {
    const std::uint64_t all = rooms[d].free / mean;
    for (std::uint32_t l = 0; l < layers; ++l) {
      slots[l][d] = all * (l + 1) / layers - all * l / layers;
      sums[l] += slots[l][d];
    }
  }
  for (std::uint32_t l = 0; l < layers; ++l) {
    while (sums[l] < problem.experts.CountIn(l)) {
      std::uint32_t richest = layers;
      for (std::uint32_t other = 0; other < layers; ++other) {
        if (sums[other] <= problem.experts.CountIn(other)) continue;
        if (richest == layers || sums[other] > sums[richest]) richest = other;
      }
      if (richest == layers) break;  // unequal sizes: covered in the end by CoverMissing
      const auto lender = std::max_element(slots[richest].begin(), slots[richest].end());
      --*lender;
      ++slots[l][static_cast<std::size_t>(lender - slots[richest].begin())];
      --sums[richest];
      ++sums[l];
    }
  }
  return slots;
}

class LayerBalance {
 public:
  LayerBalance(const PlacementProblem& problem, std::uint32_t layer,
               const std::vector<double>& total, std::vector<std::uint64_t> slots,
               std::vector<DeviceRoom>& rooms, PlacementBuilder& builder)
      : problem_(problem),
        first_(problem.experts.FirstOf(layer)),
        count_(problem.experts.CountIn(layer)),
        total_(total),
        slots_(std::move(slots)),
        rooms_(rooms),
        builder_(builder),
        copies_(count_, 1),
        load_(rooms.size(), 0) {}

  void Run() {
    Replicate();
    std::vector<ExpertIndex> order;
    for (ExpertIndex i = 0; i < count_; ++i) order.insert(order.end(), copies_[i], first_ + i);
    std::stable_sort(order.begin(), order.end(),
                     [&](ExpertIndex a, ExpertIndex b) { return Each(a) > Each(b); });
    for (const ExpertIndex e : order) (void)PutOnLeastLoaded(e);
    UseSlotsLeftOver();
  }

 private:
  double Each(ExpertIndex e) const { return total_[e] / copies_[e - first_]; }

  void Replicate() {
    const std::uint64_t all = std::accumulate(slots_.begin(), slots_.end(), std::uint64_t{0});
    using Candidate = std::pair<double, std::int64_t>;  // load a copy, minus the expert
    std::priority_queue<Candidate> hottest;
    for (ExpertIndex i = 0; i < count_; ++i) hottest.emplace(Each(first_ + i), -std::int64_t{i});
    for (std::uint64_t used = count_; used < all && !hottest.empty(); ++used) {
      const auto i = static_cast<ExpertIndex>(-hottest.top().second);
      hottest.pop();
      if (copies_[i] == problem_.server_count()) {
        --used;
        continue;
      }
      ++copies_[i];
      hottest.emplace(Each(first_ + i), -std::int64_t{i});
    }
  }
  bool PutOnLeastLoaded(ExpertIndex e) {
    std::size_t best = rooms_.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < rooms_.size(); ++d) {
      if (slots_[d] == 0 || !builder_.Fits(rooms_[d], e)) continue;
      const double busy = (load_[d] + Each(e)) / rooms_[d].speed;
      if (busy < least || (busy == least && slots_[d] > slots_[best])) {
        best = d;
        least = busy;
      }
    }
    if (best == rooms_.size()) return false;
    builder_.Put(rooms_[best], e);
    load_[best] += Each(e);
    --slots_[best];
    return true;
  }
  // Slots whose server already had the copy that would have come: to what is hottest and absent.
  void UseSlotsLeftOver() {
    std::vector<ExpertIndex> order(count_);
    std::iota(order.begin(), order.end(), first_);
    std::stable_sort(order.begin(), order.end(),
                     [&](ExpertIndex a, ExpertIndex b) { return Each(a) > Each(b); });
    for (std::size_t d = 0; d < rooms_.size(); ++d) {
      for (std::size_t i = 0; i < order.size() && slots_[d] > 0; ++i) {
        if (!builder_.Fits(rooms_[d], order[i])) continue;
        builder_.Put(rooms_[d], order[i]);
        --slots_[d];
      }
    }
  }

  const PlacementProblem& problem_;
  ExpertIndex first_, count_;
  const std::vector<double>& total_;
  std::vector<std::uint64_t> slots_;
  std::vector<DeviceRoom>& rooms_;
  PlacementBuilder& builder_;
  std::vector<std::uint32_t> copies_;
  std::vector<double> load_;
};

Result<Placement> Eplb::Place(const PlacementProblem& problem) const {
  const std::vector<double> total = TotalActivations(problem);
  std::vector<DeviceRoom> rooms = ListDevices(problem);
  auto slots = DivideSlots(problem, rooms);
  PlacementBuilder builder(problem);
  for (std::uint32_t layer = 0; layer < problem.experts.layers(); ++layer) {
    LayerBalance(problem, layer, total, std::move(slots[layer]), rooms, builder).Run();
  }
  Placement placement = std::move(builder).Finish();
  TROUPE_RETURN_IF_ERROR(CoverMissing(problem, placement));
  return placement;
}

}  // namespace

std::unique_ptr<Placer> MakeEplb() { return std::make_unique<Eplb>(); }

}  // namespace troupe
