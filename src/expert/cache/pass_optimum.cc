#include "expert/cache/pass_optimum.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

PassOptimum::PassOptimum(CacheShape shape, bool loads_all)
    : shape_(std::move(shape)),
      loads_all_(loads_all),
      held_(shape_.quotas.empty() ? 1 : shape_.grid.layers),
      resident_(shape_.grid.Count()),
      asked_(shape_.grid.Count()),
      now_(shape_.grid.Count()),
      sure_(shape_.grid.layers) {
  TROUPE_CHECK(shape_.slots > 0);
  TROUPE_CHECK(shape_.quotas.empty() || shape_.quotas.size() == shape_.grid.layers);
}

std::uint32_t PassOptimum::CapacityOf(std::uint32_t layer) const {
  if (shape_.quotas.empty()) return shape_.slots;
  const std::uint64_t others = all_sure_ - sure_[layer];
  const std::uint64_t left = shape_.slots - others + (one_is_taken_ ? 1 : 0);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(shape_.slots, left));
}

std::uint32_t PassOptimum::SureOf(std::uint32_t layer) const {
  if (!shape_.quotas.empty()) return shape_.quotas[layer];
  // The others may keep as many as their floors are.
  const std::uint32_t others = shape_.floor * (shape_.grid.layers - 1);
  return shape_.slots - std::min(shape_.slots, others);
}

void PassOptimum::NoteAsks(std::uint32_t layer, std::span<const Optimum::Use> asks) {
  if (shape_.quotas.empty()) return;
  for (const Optimum::Use& ask : asks) {
    const std::size_t index = shape_.grid.Index(ask.id);
    if (asked_[index]) continue;
    asked_[index] = true;
    if (sure_[layer] == shape_.quotas[layer]) continue;
    ++sure_[layer];
    ++all_sure_;
  }
  one_is_taken_ = one_is_taken_ || shape_.quotas[layer] == 0;
}

void PassOptimum::KeepSoonest(std::vector<Held>& held, std::size_t count) {
  if (held.size() <= count) return;
  const auto end = held.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::nth_element(held, end, {}, [](const Held& h) { return std::pair(h.next, h.index); });
  for (auto gone = end; gone != held.end(); ++gone) {
    resident_[gone->index] = false;
    ++evictions_;
  }
  held.erase(end, held.end());
}

std::uint32_t PassOptimum::Play(std::uint32_t layer, std::span<const Optimum::Use> asks) {
  if (!shape_.quotas.empty() && shape_.quotas[layer] == 0) one_is_taken_ = true;
  std::vector<Held>& held = held_[shape_.quotas.empty() ? 0 : layer];
  const std::size_t capacity = CapacityOf(layer);
  KeepSoonest(held, capacity);  // others may have come to what they are sure of since
  std::uint32_t hits = 0;
  for (const Optimum::Use& ask : asks) {
    TROUPE_CHECK(ask.id.layer == layer);
    const std::size_t index = shape_.grid.Index(ask.id);
    hits += resident_[index] ? 1 : 0;
    now_[index] = true;
  }
  std::erase_if(held, [&](const Held& h) { return now_[h.index]; });
  const bool all_stay = loads_all_ && asks.size() <= SureOf(layer);
  if (all_stay) KeepSoonest(held, capacity - asks.size());
  for (const Optimum::Use& ask : asks) {
    const std::size_t index = shape_.grid.Index(ask.id);
    held.push_back({.next = ask.next, .index = index});
    resident_[index] = true;
    now_[index] = false;
  }
  KeepSoonest(held, capacity);
  NoteAsks(layer, asks);
  hits_ += hits;
  return hits;
}

}  // namespace troupe
