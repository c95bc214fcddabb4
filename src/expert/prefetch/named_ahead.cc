#include "expert/prefetch/named_ahead.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {

Bytes NamedAhead::BytesFor(ExpertGrid grid) {
  // Of each expert a name, whether it is named, and a pin; the book of loads.
  const std::size_t each = 2 * sizeof(ExpertId) + sizeof(ExpertCache::Pin) + 1;
  return Bytes(grid.Count() * each) + AheadLoads::BytesFor(grid);
}

NamedAhead::NamedAhead(ExpertCache& cache, std::unique_ptr<Prefetching> others)
    : cache_(cache),
      grid_(cache.shape().grid),
      others_(std::move(others)),
      is_named_(grid_.Count()),
      loads_(grid_) {
  TROUPE_CHECK(others_ != nullptr);
}

void NamedAhead::OnDraftPass() {
  if (std::exchange(drafting_, true)) return;
  for (const ExpertId id : names_) is_named_[grid_.Index(id)] = false;
  names_.clear();  // of a pass that failed
  fresh_.clear();
  kept_.clear();
  others_->OnPause();
}

void NamedAhead::OnDraftRouted(std::uint32_t layer, std::span<const ExpertChoice> chosen) {
  for (const ExpertChoice& choice : chosen) {
    const ExpertId id{layer, choice.expert};
    if (cache_.Find(id) == Residence::kResident) {
      Keep(id);
    } else if (!IsNamed(id)) {
      is_named_[grid_.Index(id)] = true;
      names_.insert(std::ranges::upper_bound(names_, id.layer, {}, &ExpertId::layer), id);
    }
  }
}

bool NamedAhead::IsKept(ExpertId id) const {
  return std::ranges::any_of(kept_, [id](const ExpertCache::Pin& pin) { return pin.id() == id; });
}

// Half of the slots at most: the rest is the eviction policy's.
void NamedAhead::Keep(ExpertId id) {
  if (kept_.size() >= cache_.shape().slots / 2 || IsKept(id)) return;
  kept_.push_back(cache_.PinResident(id));
}

void NamedAhead::OnPassBegins(const PassFacts& pass) {
  drafting_ = false;
  others_->OnPassBegins(pass);
}

void NamedAhead::ForgetNames(std::uint32_t layer) {
  std::erase_if(names_, [&](ExpertId id) {
    if (id.layer != layer) return false;
    is_named_[grid_.Index(id)] = false;
    return true;
  });
}

void NamedAhead::OnLayerAsks(const LayerChoices& choices, Nanos now) {
  ForgetNames(choices.layer());
  others_->OnLayerAsks(choices, now);
}

void NamedAhead::OnFound(ExpertId id, Residence residence) {
  others_->OnFound(id, residence);
  if (residence == Residence::kAbsent || !loads_.End(id)) return;
  ++(residence == Residence::kResident ? stats_.useful : stats_.late);
  stats_.drafts_used += std::erase(fresh_, id);
}

// While a draft goes on nothing else is known of what comes next.
std::optional<ExpertId> NamedAhead::Next(std::size_t under_way) {
  for (const ExpertId id : names_) {
    if (!cache_.IsMissing(id)) continue;
    if (under_way >= kMostUnderWay) return std::nullopt;
    return id;
  }
  return drafting_ ? std::nullopt : others_->Next(under_way);
}

void NamedAhead::OnLoadBegins(ExpertId id, std::optional<ExpertId> evicted) {
  if (!IsNamed(id)) return others_->OnLoadBegins(id, evicted);
  loads_.Begin(id, std::nullopt);
  fresh_.push_back(id);
  ++stats_.loads;
  ++stats_.drafts_begun;
}

// All slots are taken by what is used: the check itself will find one.
void NamedAhead::OnNoSlot(ExpertId id) {
  if (!IsNamed(id)) return others_->OnNoSlot(id);
  ForgetName(id);
}

void NamedAhead::ForgetName(ExpertId id) {
  is_named_[grid_.Index(id)] = false;
  std::erase(names_, id);
}

void NamedAhead::OnLoaded(ExpertId id) {
  if (!loads_.Has(id)) return others_->OnLoaded(id);
  if (IsNamed(id)) Keep(id);
}

void NamedAhead::Release(std::uint32_t layer) {
  others_->Release(layer);
  std::erase_if(kept_, [layer](const ExpertCache::Pin& pin) { return pin.id().layer == layer; });
  std::erase_if(fresh_, [layer](ExpertId id) { return id.layer == layer; });
}

void NamedAhead::ReleaseAll() {
  others_->ReleaseAll();
  kept_.clear();
}

void NamedAhead::OnEvicted(ExpertId id, bool on_demand) {
  if (!loads_.End(id)) return others_->OnEvicted(id, on_demand);
  std::erase(fresh_, id);
  ++stats_.wasted;
}

void NamedAhead::OnFailed(ExpertId id) {
  if (!loads_.End(id)) return others_->OnFailed(id);
  ForgetName(id);  // it would fail again
  std::erase(fresh_, id);
  ++stats_.wasted;
}

void NamedAhead::OnCancelled(ExpertId id) {
  if (!loads_.End(id)) return others_->OnCancelled(id);
  std::erase(fresh_, id);
  ++stats_.cancelled;
}

PrefetchStats NamedAhead::stats() const {
  PrefetchStats stats = others_->stats();
  stats.AddCounts(stats_);
  return stats;
}

}  // namespace troupe
