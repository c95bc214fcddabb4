// The half of OffloadedExperts that brings experts into memory which no pass has asked for: to stay
// there for as long as somebody says, or to be there when the first pass asks. What is to stay is
// read behind the loads of passes, which wait for none of it, or, where nobody computes, at once.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "expert/flow/memory_plan.h"
#include "runtime/offloaded_experts.h"

namespace troupe {

HeldExperts& OffloadedExperts::held() {
  if (held_ == nullptr) held_ = std::make_unique<HeldExperts>(flow_.cache().shape().grid);
  return *held_;
}

// What is held, or on its way to be, belongs to no layer's quota: the other slots are shared as all
// were before. A pass of a layer whose quota were full of such would wait for slots that come free
// after it alone.
void OffloadedExperts::ShareSlots(std::uint32_t all) {
  if (quotas_.empty()) return;
  const auto slots = static_cast<double>(most_slots_);
  std::vector<std::uint32_t> quotas(quotas_.size());
  for (const auto& [id, pin] : pins_) ++quotas[id.layer];
  if (holding_) quotas[holding_->layer] += static_cast<std::uint32_t>(holding_->left);
  const double left = std::max(0.0, all - std::accumulate(quotas.begin(), quotas.end(), 0.0));
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
  // A pass needs a slot beside what is held, and there may be fewer than when it was planned.
  const std::size_t taken = pins_.size() + 1, slots = flow_.cache().shape().slots;
  const std::size_t fitting = std::min(demands.size(), slots - std::min(slots, taken));
  const std::size_t refused = demands.size() - fitting;
  demands.resize(fitting);
  const DemandId demand = flow_.Ask(layer, demands, clock_.Now(), DemandOf::kHolding);
  holding_ = {.demand = demand,
              .layer = layer,
              .left = demands.size(),
              .refused = refused,
              .looked_in = passes_,
              .looked_at = clock_.Now()};
  ShareSlots(flow_.cache().shape().slots);
  flow_.Continue();
  loads_->loader().Poll();
}

std::optional<Status> OffloadedExperts::GoOnHolding() {
  TROUPE_CHECK(holding_);
  CloseDemand();
  // Two looks may come between the same two passes, shortly after each other.
  constexpr Nanos kIdle = 5'000'000;
  const Nanos now = clock_.Now();
  const bool same_pass = std::exchange(holding_->looked_in, passes_) == passes_;
  if (!same_pass) holding_->looked_at = now;
  const bool nobody_computes = same_pass && now - holding_->looked_at >= kIdle;
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
  const auto [layer, left] = std::pair(holding.layer, holding.left + holding.refused);
  holding_.reset();
  ShareSlots(flow_.cache().shape().slots);
  if (!gave.ok()) return gave.status();
  if (left == 0) return OkStatus();
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

Status OffloadedExperts::Fill(std::span<const std::vector<std::uint32_t>> by_layer,
                              const ByteProgress& progress) {
  CloseDemand();
  const Nanos start = clock_.Now();
  const Bytes slot = loads_->slot_bytes();
  std::size_t all = 0, done = 0;
  for (const std::vector<std::uint32_t>& experts : by_layer) all += experts.size();
  for (std::uint32_t layer = 0; layer < by_layer.size(); ++layer) {
    std::vector<ExpertDemand> demands;
    for (const std::uint32_t expert : by_layer[layer]) {
      demands.push_back({.expert = expert, .tokens = 1});
    }
    if (demands.empty()) continue;
    TROUPE_RETURN_IF_ERROR(Report(progress, done * slot, all * slot));
    const DemandId demand = flow_.Ask(layer, demands, clock_.Now(), DemandOf::kFilling);
    const auto count = [&](const Given&, const Mlp&) { ++filled_.experts; };
    TROUPE_RETURN_IF_ERROR(GiveTo(demand, layer, Waiting::kForLoads, count).status());
    done += demands.size();
  }
  filled_.seconds = static_cast<double>(clock_.Now() - start) * 1e-9;
  SettleUsage();  // no request is to pay for it
  return Report(progress, all * slot, all * slot);
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

SlotUse OffloadedExperts::slot_use() const {
  SlotUse use = slot_use_;
  use.most = most_slots_;
  use.slots = flow_.cache().shape().slots;
  use.with_memory = loads_->slots_with_memory();
  use.slot = loads_->slot_bytes();
  return use;
}

SlotUse OffloadedExperts::UseSlots(std::uint32_t slots) {
  // Copied and given back at memory's speed: some tens of milliseconds.
  constexpr Bytes kStep = 128_MiB;
  CloseDemand();
  loads_->loader().Poll();
  CollectEnded();
  const std::uint32_t before = flow_.cache().shape().slots;
  const std::size_t coming = holding_ ? holding_->left : 0;
  const auto held = static_cast<std::uint32_t>(pins_.size() + coming);
  const std::uint32_t least = std::min(held + kLeastSlots, most_slots_);
  const auto step =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(kStep / loads_->slot_bytes(), 1));
  slots = std::clamp(slots, std::max(least, before - std::min(before, step)), most_slots_);
  if (slot_use_.refused) slots = most_slots_;
  if (slots == before && loads_->slots_with_memory() <= slots) return slot_use();
  ShareSlots(slots);
  const ExpertCache::Resized resized = flow_.Resize(slots);
  for (const ExpertCache::Move& move : resized.moved) loads_->Move(move.from, move.to);
  slot_use_.moved += resized.moved.size();
  slot_use_.given_back += before - std::min(before, slots);
  slot_use_.taken_again += slots - std::min(before, slots);
  const std::uint32_t with_memory = loads_->slots_with_memory();
  if (!loads_->GiveBackFrom(resized.below)) slot_use_.refused = true;
  slot_use_.returned += (with_memory - loads_->slots_with_memory()) * loads_->slot_bytes();
  return slot_use();
}

bool OffloadedExperts::Release(ExpertId id) {
  if (held().Holds(id)) held_->Remove(id);
  if (!held_->IsFree(id)) return false;
  if (pins_.erase(id) > 0) ShareSlots(flow_.cache().shape().slots);
  return true;
}

}  // namespace troupe
