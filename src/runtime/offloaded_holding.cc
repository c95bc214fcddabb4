// The half of OffloadedExperts that keeps experts in memory for as long as somebody says. They are
// read behind the loads of passes, which wait for none of it, or, where nobody computes, at once.
#include <utility>

#include "base/check.h"
#include "runtime/offloaded_experts.h"

namespace troupe {

HeldExperts& OffloadedExperts::held() {
  if (held_ == nullptr) held_ = std::make_unique<HeldExperts>(flow_.cache().shape().grid);
  return *held_;
}

// What is held belongs to no layer's quota: the other slots are shared as all were before.
void OffloadedExperts::ShareSlots() {
  if (quotas_.empty()) return;
  const auto slots = static_cast<double>(flow_.cache().shape().slots);
  const double left = slots - static_cast<double>(pins_.size());
  std::vector<std::uint32_t> quotas(quotas_.size());
  for (const auto& [id, pin] : pins_) ++quotas[id.layer];
  for (std::size_t layer = 0; layer < quotas.size(); ++layer) {
    quotas[layer] += static_cast<std::uint32_t>(quotas_[layer] * left / slots);
  }
  flow_.set_quotas(std::move(quotas));
}

Status OffloadedExperts::Hold(std::uint32_t layer, std::span<const std::uint32_t> experts,
                              const FetchedExperts& fetched) {
  loads_->set_fetched(&fetched);
  BeginHolding(layer, experts);
  const std::optional<Status> held = HoldWhatCame(Waiting::kForLoads);
  loads_->set_fetched(nullptr);
  return *held;
}

void OffloadedExperts::BeginHolding(std::uint32_t layer, std::span<const std::uint32_t> experts) {
  TROUPE_CHECK(!holding_);
  CloseDemand();
  std::vector<ExpertDemand> demands;
  for (const std::uint32_t expert : experts) {
    if (!pins_.contains({layer, expert})) demands.push_back({.expert = expert, .tokens = 1});
  }
  const DemandId demand = flow_.Ask(layer, demands, clock_.Now(), DemandOf::kHolding);
  holding_ = {.demand = demand, .layer = layer, .left = demands.size(), .looked_in = passes_};
  flow_.Continue();
  loads_->loader().Poll();
}

std::optional<Status> OffloadedExperts::GoOnHolding() {
  TROUPE_CHECK(holding_);
  CloseDemand();
  const bool nobody_computes = std::exchange(holding_->looked_in, passes_) == passes_;
  return HoldWhatCame(nobody_computes ? Waiting::kForLoads : Waiting::kNever);
}

std::optional<Status> OffloadedExperts::HoldWhatCame(Waiting waiting) {
  Holding& holding = *holding_;
  const auto hold = [&](const Given& expert, const Mlp& weights) {
    const ExpertId id{holding.layer, expert.expert};
    pins_.emplace(id, flow_.Hold(id));
    held().Add(id, weights);
    --holding.left;
  };
  const Result<Gave> gave = GiveTo(holding.demand, holding.layer, waiting, hold);
  if (gave.ok() && *gave == Gave::kMoreMayCome) return std::nullopt;
  const auto [layer, left] = std::pair(holding.layer, holding.left);
  holding_.reset();
  if (!gave.ok()) return gave.status();
  ShareSlots();
  if (*gave == Gave::kAll) return OkStatus();
  return Error(Code::kResourceExhausted,
               "layer {}: no slot is left for {} experts that are to be held beside {} others",
               layer, left, pins_.size());
}

Result<OffloadedExperts::Gave> OffloadedExperts::GiveTo(
    DemandId demand, std::uint32_t layer, Waiting waiting,
    const std::function<void(const Given&, const Mlp&)>& take) {
  while (!flow_.IsDone(demand)) {
    flow_.Continue();
    loads_->loader().Poll();
    CollectEnded();
    while (flow_.MustWait(demand)) {
      if (waiting == Waiting::kNever) return Gave::kMoreMayCome;
      loads_->Wait();
      CollectEnded();
    }
    const Result<std::span<const Given>> given = flow_.Give(demand);
    if (!given.ok() || given->empty()) {
      flow_.Close(demand);
      if (!given.ok()) return given.status();
      return Gave::kNoSlot;
    }
    for (const Given& expert : *given) {
      take(expert, loads_->WeightsIn(expert.slot, {layer, expert.expert}, ExpertCopy::kFull));
    }
  }
  flow_.Close(demand);
  return Gave::kAll;
}

Status OffloadedExperts::WithExpert(ExpertId id, const std::function<void(const Mlp&)>& use) {
  CloseDemand();
  const ExpertDemand one[] = {{.expert = id.expert, .tokens = 1}};
  const DemandId demand = flow_.Ask(id.layer, one, clock_.Now(), DemandOf::kPeer);
  const auto run = [&](const Given&, const Mlp& weights) { use(weights); };
  TROUPE_ASSIGN_OR_RETURN(const Gave gave, GiveTo(demand, id.layer, Waiting::kForLoads, run));
  if (gave == Gave::kAll) return OkStatus();
  return Error(Code::kResourceExhausted, "{}: no slot is left for it", ToString(id));
}

bool OffloadedExperts::Release(ExpertId id) {
  if (held().Holds(id)) held_->Remove(id);
  if (!held_->IsFree(id)) return false;
  if (pins_.erase(id) > 0) ShareSlots();
  return true;
}

}  // namespace troupe
