#include "expert/cache/expert_cache.h"

#include <algorithm>
#include <numeric>

namespace troupe {

ExpertCache::Pin& ExpertCache::Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    Release();
    cache_ = std::exchange(other.cache_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

void ExpertCache::Pin::Release() {
  if (cache_ == nullptr) return;
  Entry& entry = cache_->At(id_);
  TROUPE_CHECK(entry.pins > 0);
  if (--entry.pins == 0) cache_->SetEvictable(id_, true);
  cache_ = nullptr;
}

ExpertCache::ExpertCache(CacheShape shape, std::unique_ptr<EvictionPolicy> policy)
    : shape_(std::move(shape)),
      most_slots_(shape_.slots),
      policy_(std::move(policy)),
      entries_(shape_.grid.Count()),
      evictable_(shape_.grid.Count()),
      held_(shape_.grid.layers),
      free_(shape_.slots),
      layer_hits_(shape_.grid.layers) {
  TROUPE_CHECK(shape_.slots > 0);
  TROUPE_CHECK(shape_.quotas.empty() || shape_.quotas.size() == shape_.grid.layers);
  TROUPE_CHECK(shape_.quotas.empty() || shape_.floor == 0);
  // From the back, so that slots are handed out from the first on.
  std::iota(free_.rbegin(), free_.rend(), 0u);
}

std::uint32_t ExpertCache::SlotOf(ExpertId id) const {
  const Entry& entry = entries_[shape_.grid.Index(id)];
  TROUPE_CHECK(entry.residence != Residence::kAbsent);
  return entry.slot;
}

ExpertCopy ExpertCache::CopyOf(ExpertId id) const {
  const Entry& entry = entries_[shape_.grid.Index(id)];
  TROUPE_CHECK(entry.residence != Residence::kAbsent);
  return entry.copy;
}

Residence ExpertCache::Ask(ExpertId id, std::span<const Asker> askers, ExpertCopy least) {
  if (Find(id) == Residence::kResident && CopyOf(id) > least) GiveUp(id);
  OnChosen(id, askers);
  return Need(id, least);
}

bool ExpertCache::GiveUp(ExpertId id) {
  TROUPE_CHECK(Find(id) == Residence::kResident);
  if (At(id).pins > 0) return false;
  Drop(id);
  return true;
}

Residence ExpertCache::Need(ExpertId id, ExpertCopy least) {
  Residence residence = Find(id);
  if (residence == Residence::kResident && CopyOf(id) > least) {
    GiveUp(id);
    residence = Residence::kAbsent;
  }
  ++layer_hits_[id.layer].asks;
  layer_hits_[id.layer].hits += residence == Residence::kResident ? 1 : 0;
  switch (residence) {
    case Residence::kResident:
      ++stats_.hits;
      break;
    case Residence::kLoading:
      ++stats_.joined;
      break;
    case Residence::kAbsent:
      ++stats_.misses;
      break;
  }
  return residence;
}

std::optional<ExpertCache::Admission> ExpertCache::Admit(ExpertId id, ExpertCopy copy) {
  TROUPE_CHECK(Find(id) == Residence::kAbsent);
  Admission admission;
  if (free_.empty()) {
    admission.evicted = ChooseVictim(id);
    if (!admission.evicted) return std::nullopt;
    const std::uint32_t slot = SlotOf(*admission.evicted);
    Forget(*admission.evicted);
    policy_->OnEvicted(*admission.evicted);
    ++stats_.evictions;
    if (free_.empty()) free_.push_back(slot);  // above those that are left, until the next Resize
  }
  admission.slot = free_.back();
  free_.pop_back();
  At(id) = {.residence = Residence::kLoading, .copy = copy, .slot = admission.slot, .pins = 0};
  ++held_[id.layer];
  policy_->OnAdmitted(id);
  return admission;
}

void ExpertCache::OnLoaded(ExpertId id) {
  Entry& entry = At(id);
  TROUPE_CHECK(entry.residence == Residence::kLoading);
  entry.residence = Residence::kResident;
  SetEvictable(id, true);
}

void ExpertCache::Abandon(ExpertId id) {
  TROUPE_CHECK(Find(id) == Residence::kLoading);
  Forget(id);
  policy_->OnAbandoned(id);
}

void ExpertCache::Drop(ExpertId id) {
  Forget(id);
  policy_->OnEvicted(id);
  ++stats_.dropped;
}

std::vector<ExpertId> ExpertCache::DropLowCopies() {
  std::vector<ExpertId> dropped;
  for (std::uint32_t layer = 0; layer < shape_.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < shape_.grid.experts; ++expert) {
      const ExpertId id{layer, expert};
      const Entry& entry = At(id);
      if (entry.residence != Residence::kResident || entry.copy != ExpertCopy::kLow) continue;
      if (entry.pins > 0) continue;
      Drop(id);
      dropped.push_back(id);
    }
  }
  return dropped;
}

void ExpertCache::Forget(ExpertId id) {
  Entry& entry = At(id);
  TROUPE_CHECK(entry.pins == 0);
  if (entry.slot < shape_.slots) free_.push_back(entry.slot);
  entry.residence = Residence::kAbsent;
  SetEvictable(id, false);
  --held_[id.layer];
}

ExpertCache::Pin ExpertCache::PinResident(ExpertId id) {
  Entry& entry = At(id);
  TROUPE_CHECK(entry.residence == Residence::kResident);
  if (entry.pins++ == 0) SetEvictable(id, false);
  return Pin(*this, id);
}

void ExpertCache::GatherEvictable(std::uint32_t layer) {
  const std::size_t first = shape_.grid.Index({layer, 0});
  for (std::uint32_t expert = 0; expert < shape_.grid.experts; ++expert) {
    if (evictable_[first + expert] != 0) candidates_.push_back({layer, expert});
  }
}

std::optional<ExpertId> ExpertCache::ChooseGathered() {
  if (candidates_.empty()) return std::nullopt;
  return candidates_[policy_->Choose(candidates_)];
}

std::optional<ExpertId> ExpertCache::ChooseInLayer(std::uint32_t layer) {
  if (policy_->keeps_order()) return policy_->FirstToGo(layer, evictable_);
  candidates_.clear();
  GatherEvictable(layer);
  return ChooseGathered();
}

std::optional<ExpertId> ExpertCache::ChooseAnywhere() {
  if (policy_->keeps_order()) return policy_->FirstToGo(std::nullopt, evictable_);
  candidates_.clear();
  for (std::uint32_t layer = 0; layer < shape_.grid.layers; ++layer) GatherEvictable(layer);
  return ChooseGathered();
}

std::optional<ExpertId> ExpertCache::ChooseAboveFloor(std::optional<std::uint32_t> wanted) {
  const auto may_lose = [&](std::uint32_t layer) {
    return layer == wanted || held_[layer] > shape_.floor;
  };
  if (!policy_->keeps_order()) {
    candidates_.clear();
    for (std::uint32_t layer = 0; layer < shape_.grid.layers; ++layer) {
      if (may_lose(layer)) GatherEvictable(layer);
    }
    return ChooseGathered();
  }
  may_go_ = evictable_;
  for (std::uint32_t layer = 0; layer < shape_.grid.layers; ++layer) {
    const auto first = may_go_.begin() + static_cast<std::ptrdiff_t>(shape_.grid.Index({layer, 0}));
    if (!may_lose(layer)) std::fill_n(first, shape_.grid.experts, std::uint8_t{0});
  }
  return policy_->FirstToGo(std::nullopt, may_go_);
}

std::optional<ExpertId> ExpertCache::ChooseVictim(ExpertId wanted) {
  if (shape_.quotas.empty()) {
    return shape_.floor == 0 ? ChooseAnywhere() : ChooseAboveFloor(wanted.layer);
  }
  // Another layer above its quota gives first.
  if (const auto victim = ChooseInExcess(wanted.layer)) return victim;
  // A layer that holds something waits for its own rather than rob one that is within its quota.
  if (held_[wanted.layer] > 0) return ChooseInLayer(wanted.layer);
  return ChooseAnywhere();
}

std::optional<ExpertId> ExpertCache::ChooseToShrink() {
  if (!shape_.quotas.empty()) {
    if (const auto victim = ChooseInExcess(std::nullopt)) return victim;
  } else if (shape_.floor > 0) {
    if (const auto victim = ChooseAboveFloor(std::nullopt)) return victim;
  }
  return ChooseAnywhere();
}

// The one with the most first.
std::optional<ExpertId> ExpertCache::ChooseInExcess(std::optional<std::uint32_t> but) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>>& excess = excess_;  // how much, which
  excess.clear();
  for (std::uint32_t layer = 0; layer < shape_.grid.layers; ++layer) {
    if (layer != but && held_[layer] > shape_.quotas[layer]) {
      excess.emplace_back(held_[layer] - shape_.quotas[layer], layer);
    }
  }
  std::ranges::sort(excess, std::greater());
  for (const auto& [amount, layer] : excess) {
    if (const auto victim = ChooseInLayer(layer)) return victim;
  }
  return std::nullopt;
}

ExpertCache::Resized ExpertCache::Resize(std::uint32_t slots) {
  TROUPE_CHECK(slots > 0 && slots <= most_slots_);
  shape_.slots = slots;
  Resized resized;
  EvictDownTo(slots, resized.evicted);
  MoveBelow(slots, resized);
  return resized;
}

void ExpertCache::EvictDownTo(std::uint32_t slots, std::vector<ExpertId>& evicted) {
  std::uint32_t held = std::accumulate(held_.begin(), held_.end(), 0u);
  for (; held > slots; --held) {
    const std::optional<ExpertId> victim = ChooseToShrink();
    if (!victim) return;
    Forget(*victim);
    policy_->OnEvicted(*victim);
    ++stats_.evictions;
    evicted.push_back(*victim);
  }
}

void ExpertCache::MoveBelow(std::uint32_t slots, Resized& resized) {
  std::vector<bool> used(most_slots_);
  std::vector<ExpertId> above;
  for (std::uint32_t layer = 0; layer < shape_.grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < shape_.grid.experts; ++expert) {
      const ExpertId id{layer, expert};
      const Entry& entry = At(id);
      if (entry.residence == Residence::kAbsent) continue;
      used[entry.slot] = true;
      const bool moves = entry.residence == Residence::kResident && entry.pins == 0;
      if (entry.slot >= slots && moves) above.push_back(id);
    }
  }
  std::uint32_t to = 0;
  for (const ExpertId id : above) {
    while (to < slots && used[to]) ++to;
    if (to == slots) break;
    Entry& entry = At(id);
    resized.moved.push_back({.id = id, .from = entry.slot, .to = to});
    used[to] = true;
    used[entry.slot] = false;
    entry.slot = to;
  }
  resized.below = most_slots_;
  while (resized.below > slots && !used[resized.below - 1]) --resized.below;
  free_.clear();
  for (std::uint32_t slot = slots; slot-- > 0;) {  // from the back, as at the beginning
    if (!used[slot]) free_.push_back(slot);
  }
}

}  // namespace troupe
