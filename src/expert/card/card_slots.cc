#include "expert/card/card_slots.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace troupe {
namespace {

// In passes: an ask that is this old counts half.
constexpr double kHalfLife = 64;
// By how much more popular than the expert that leaves one has to be: a copy takes the link's time,
// and two that are as popular as each other should not take turns.
constexpr double kClearly = 1.25;
constexpr double kMostWeight = 1e200;

}  // namespace

CardSlots::CardSlots(ExpertGrid grid, std::uint32_t slots)
    : grid_(grid), asks_(grid.Count()), slot_of_(grid.Count(), kNone), holders_(slots) {}

Bytes CardSlots::BytesFor(ExpertGrid grid, std::uint32_t slots) {
  return Bytes(grid.Count() * (sizeof(double) + sizeof(std::uint32_t)) + slots * sizeof(Holder));
}

// Newer asks grow in place of older ones shrinking: a pass then touches no table.
void CardSlots::OnPassBegins() {
  weight_ *= std::exp2(1 / kHalfLife);
  if (weight_ < kMostWeight) return;
  for (double& asks : asks_) asks /= weight_;
  weight_ = 1;
}

void CardSlots::OnAsked(ExpertId id) { asks_[grid_.Index(id)] += weight_; }

double CardSlots::Popularity(ExpertId id) const { return asks_[grid_.Index(id)] / weight_; }

std::optional<std::uint32_t> CardSlots::SlotOf(ExpertId id) const {
  const std::uint32_t slot = slot_of_[grid_.Index(id)];
  if (slot == kNone || !holders_[slot].whole) return std::nullopt;
  return slot;
}

std::optional<std::uint32_t> CardSlots::LeastPopular(std::uint32_t layer_under_way) const {
  std::optional<std::uint32_t> least;
  for (std::uint32_t slot = 0; slot < holders_.size(); ++slot) {
    const Holder& holder = holders_[slot];
    if (!holder.whole || holder.id.layer == layer_under_way) continue;
    if (!least || asks_[grid_.Index(holder.id)] < asks_[grid_.Index(holders_[*least].id)]) {
      least = slot;
    }
  }
  return least;
}

std::optional<std::uint32_t> CardSlots::SlotFor(ExpertId id, std::uint32_t layer_under_way) const {
  const auto unused = std::ranges::find(holders_, false, &Holder::taken);
  if (unused != holders_.end()) return static_cast<std::uint32_t>(unused - holders_.begin());
  const std::optional<std::uint32_t> least = LeastPopular(layer_under_way);
  if (!least) return std::nullopt;
  const double leaves = asks_[grid_.Index(holders_[*least].id)];
  return asks_[grid_.Index(id)] > kClearly * leaves ? least : std::nullopt;
}

bool CardSlots::WouldMakeRoom(ExpertId id, std::uint32_t layer_under_way) const {
  return !Has(id) && SlotFor(id, layer_under_way).has_value();
}

std::optional<CardSlots::Room> CardSlots::MakeRoom(ExpertId id, std::uint32_t layer_under_way) {
  TROUPE_CHECK(!Has(id));
  const std::optional<std::uint32_t> slot = SlotFor(id, layer_under_way);
  if (!slot) return std::nullopt;
  Holder& holder = holders_[*slot];
  Room room{.slot = *slot, .leaves = std::nullopt};
  if (holder.taken) {
    room.leaves = holder.id;
    slot_of_[grid_.Index(holder.id)] = kNone;
    --held_;
    ++evictions_;
  }
  holder = {.id = id, .taken = true, .whole = false};
  slot_of_[grid_.Index(id)] = *slot;
  return room;
}

void CardSlots::OnCopied(ExpertId id, bool well) {
  std::uint32_t& slot = slot_of_[grid_.Index(id)];
  TROUPE_CHECK(slot != kNone && !holders_[slot].whole);
  if (well) {
    holders_[slot].whole = true;
    ++held_;
    return;
  }
  holders_[slot] = {};
  slot = kNone;
}

}  // namespace troupe
