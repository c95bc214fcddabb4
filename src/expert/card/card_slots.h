// Which experts lie in the slots of a card's memory: those that layers have asked for most often
// lately. What was asked for long ago counts less with every pass, so that the card follows what
// the texts are about. Pure: who copies the bytes, and when, is not its matter.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "expert/expert_grid.h"
#include "expert/expert_id.h"

namespace troupe {

class CardSlots {
 public:
  CardSlots(ExpertGrid grid, std::uint32_t slots);
  static Bytes BytesFor(ExpertGrid grid, std::uint32_t slots);

  void OnPassBegins();
  void OnAsked(ExpertId id);
  // Asks of an expert, the older the less.
  double Popularity(ExpertId id) const;

  // Where it lies, once all of it is there.
  std::optional<std::uint32_t> SlotOf(ExpertId id) const;
  // Whether it is there or on its way.
  bool Has(ExpertId id) const { return slot_of_[grid_.Index(id)] != kNone; }

  struct Room {
    std::uint32_t slot = 0;
    std::optional<ExpertId> leaves;  // what was in it
  };
  // A slot for an expert that has none: one that is free, or that of the least popular one, if that
  // is clearly less so. Experts of the layer under way keep theirs: the card may be reading them.
  // The expert is on its way from now on. None: it is not worth a slot.
  std::optional<Room> MakeRoom(ExpertId id, std::uint32_t layer_under_way);
  bool WouldMakeRoom(ExpertId id, std::uint32_t layer_under_way) const;
  // Its copy has ended, well or badly.
  void OnCopied(ExpertId id, bool well);

  std::uint32_t slots() const { return static_cast<std::uint32_t>(holders_.size()); }
  std::uint32_t held() const { return held_; }  // whole
  std::uint64_t evictions() const { return evictions_; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  struct Holder {
    ExpertId id;
    bool taken = false, whole = false;
  };

  std::optional<std::uint32_t> LeastPopular(std::uint32_t layer_under_way) const;
  std::optional<std::uint32_t> SlotFor(ExpertId id, std::uint32_t layer_under_way) const;

  ExpertGrid grid_;
  double weight_ = 1;  // of an ask now
  std::vector<double> asks_;
  std::vector<std::uint32_t> slot_of_;
  std::vector<Holder> holders_;
  std::uint32_t held_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace troupe
