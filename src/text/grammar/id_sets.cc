#include "text/grammar/id_sets.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr SetId kFreeSlot = ~SetId{0};

}  // namespace

IdSets::IdSets() : begins_(1, 0), slots_(16, kFreeSlot) {}

std::size_t IdSets::SlotOf(std::span<const std::uint32_t> ids) const {
  std::uint64_t hash = ids.size();
  for (const std::uint32_t id : ids) hash = (hash ^ id) * 0x9E3779B97F4A7C15U;
  hash ^= hash >> 29;
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != kFreeSlot && !std::ranges::equal(Get(slots_[slot]), ids)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

SetId IdSets::Intern(std::span<const std::uint32_t> ids) {
  const std::size_t slot = SlotOf(ids);
  if (slots_[slot] != kFreeSlot) return slots_[slot];
  const auto made = static_cast<SetId>(size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  begins_.push_back(ids_.size());
  slots_[slot] = made;
  if (2 * size() > slots_.size()) {
    slots_.assign(2 * slots_.size(), kFreeSlot);
    for (SetId set = 0; set < size(); ++set) slots_[SlotOf(Get(set))] = set;
  }
  return made;
}

}  // namespace troupe
