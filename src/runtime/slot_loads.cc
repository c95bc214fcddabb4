#include "runtime/slot_loads.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

Bytes SlotLoads::SlotBytes(const ExpertLayouts& layouts) {
  std::uint64_t largest = 0;
  for (const ExpertLayout& layout : layouts) largest = std::max(largest, layout.SlotBytes());
  return Bytes(AlignUp(largest, kDirectAlignment.count()));
}

Result<std::unique_ptr<SlotLoads>> SlotLoads::Create(
    ExpertLayouts layouts, std::unique_ptr<ExpertStore> store, LowExperts low, std::uint32_t slots,
    std::unique_ptr<AsyncReader> reader, ThreadPool& pool, const Clock& clock,
    const LoaderOptions& options, MeasuredCosts costs) {
  const Bytes slot = SlotBytes(layouts);
  std::unique_ptr<SlotLoads> loads(
      new SlotLoads(std::move(layouts), std::move(store), std::move(low), std::move(costs), clock));
  loads->slot_bytes_ = slot.count();
  loads->held_ = options.prefetch_reads * options.prefetch_piece;
  TROUPE_ASSIGN_OR_RETURN(
      loads->slots_,
      AlignedBuffer::Allocate(slots * slot, {.alignment = kHugePage, .huge_pages = true}));
  if (loads->store_->direct() && reader->RegisterMemory(loads->slots_.bytes())) {
    loads->with_memory_ = slots;  // the kernel has pinned it
  }
  TROUPE_CHECK(loads->low_.store == nullptr ||
               (loads->store_->direct() && SlotBytes(loads->low_.layouts) <= slot));
  TROUPE_ASSIGN_OR_RETURN(loads->loader_, ExpertLoader::Create(*loads->store_, std::move(reader),
                                                               slot, pool, clock, options));
  return loads;
}

void SlotLoads::Begin(ExpertId id, std::uint32_t slot, ExpertCopy copy, Urgency urgency) {
  with_memory_ = std::max(with_memory_, slot + 1);
  const std::uint64_t bytes =
      AlignUp(LayoutOf(id.layer, copy).SlotBytes(), kDirectAlignment.count());
  const std::span<std::byte> to = slots_.bytes().subspan(slot * slot_bytes_, bytes);
  if (fetched_ != nullptr && copy == ExpertCopy::kFull) {
    if (const auto found = fetched_->find(id); found != fetched_->end()) {
      TROUPE_CHECK(found->second.size() == LayoutOf(id.layer, copy).SlotBytes());
      std::ranges::copy(found->second, to.begin());
      copied_.push_back({.id = id, .status = OkStatus()});
      return;
    }
  }
  loader_->Request(id, to, urgency, copy == ExpertCopy::kLow ? low_.store.get() : nullptr);
}

void SlotLoads::Move(std::uint32_t from, std::uint32_t to) {
  std::ranges::copy(slots_.bytes().subspan(from * slot_bytes_, slot_bytes_),
                    slots_.bytes().subspan(to * slot_bytes_, slot_bytes_).begin());
}

bool SlotLoads::GiveBackFrom(std::uint32_t slot) {
  if (slot >= with_memory_) return true;
  const Bytes kept(slot * slot_bytes_);
  if (!loader_->ForgetMemory(slots_.bytes().subspan(kept.count()))) return false;
  if (!slots_.GiveBackFrom(kept)) return false;
  with_memory_ = slot;
  return true;
}

void SlotLoads::Wait() {
  if (copied_.empty()) loader_->Wait();
}

std::vector<LoadEnd> SlotLoads::TakeEnded() {
  std::vector<LoadEnd> ended = loader_->TakeEnded();
  ended.insert(ended.end(), copied_.begin(), copied_.end());
  copied_.clear();
  const SeenReads& seen = loader_->stats().seen;
  speed_.OnRead(seen.bytes, seen.seconds, clock_.Now());
  return ended;
}

double SlotLoads::SecondsFor(std::uint32_t layer) const {
  const double speed = speed_.measured();
  return speed > 0 ? static_cast<double>(layouts_[layer].SlotBytes()) / speed : 0;
}

double SlotLoads::SecondsLeft(ExpertId id) const {
  const double speed = speed_.measured();
  return speed > 0 ? AsDouble(loader_->BytesLeft(id)) / speed : 0;
}

double SlotLoads::SecondsHeld(std::uint32_t layer) const {
  const double speed = speed_.measured();
  return speed > 0 ? std::min(SecondsFor(layer), AsDouble(held_) / speed) : 0;
}

AnswerCosts SlotLoads::CostsFor(std::uint32_t layer) const {
  AnswerCosts costs{.full = SourceBytes(layer, ExpertCopy::kFull), .medium = costs_.medium};
  if (low_.store != nullptr) costs.low = SourceBytes(layer, ExpertCopy::kLow);
  if (layer < costs_.local.size()) costs.local = costs_.local[layer];
  costs.medium.queued = loader_->AheadOfDemand();
  AddPeers(layer, costs);
  return costs;
}

void SlotLoads::AddPeers(std::uint32_t layer, AnswerCosts& costs) const {
  costs.places = peers_->Places();
  if (costs.places.empty()) return;
  AddLateSpeed(costs);
  if (!shares_) {
    costs.places = {};
    return;
  }
  holders_.clear();
  for (std::uint32_t expert = 0; expert < experts_; ++expert) {
    holders_.push_back(peers_->HoldersOf({layer, expert}));
  }
  costs.holders = holders_;
}

// With peers the medium is as fast as it was lately, whatever a probe has said: others may use the
// disk, too, and without any figure nothing would be weighed and nobody asked.
void SlotLoads::AddLateSpeed(AnswerCosts& costs) const {
  constexpr std::uint64_t kEnough = 8;
  const double speed = speed_.Expected(costs_.medium.bytes_per_second, clock_.Now());
  if (loader_->stats().loads < kEnough || speed <= 0) return;
  costs.medium.latency_seconds = 0;  // within the speed
  costs.medium.bytes_per_second = speed;
}

Mlp SlotLoads::WeightsIn(std::uint32_t slot, ExpertId id, ExpertCopy copy) const {
  const Mlp matrices = LayoutOf(id.layer, copy).At(slots_.data() + slot * slot_bytes_);
  return extras_.empty() ? matrices : extras_[id.layer].Complete(matrices, id.expert);
}

Bytes SlotLoads::SourceBytes(std::uint32_t layer, ExpertCopy copy) const {
  return Bytes(LayoutOf(layer, copy).SourceBytes());
}

}  // namespace troupe
