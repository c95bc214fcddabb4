// The places for sequences that an engine was planned for. Whoever holds a slot may have a
// sequence; its number is used again after it is given back, so that tables by sequence stay short.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "expert/pass_facts.h"

namespace troupe {

class SequenceSlots {
 public:
  // Gives its place back when it is destroyed. The slots must outlive it, at the same address.
  class Slot {
   public:
    Slot(Slot&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)), id_(other.id_) {}
    Slot& operator=(Slot&& other) noexcept {
      std::swap(slots_, other.slots_);
      std::swap(id_, other.id_);
      return *this;
    }
    ~Slot() {
      if (slots_ != nullptr) slots_->taken_[id_] = false;
    }

    SequenceId id() const { return id_; }

   private:
    friend class SequenceSlots;
    Slot(SequenceSlots& slots, SequenceId id) : slots_(&slots), id_(id) {}

    SequenceSlots* slots_;
    SequenceId id_;
  };

  explicit SequenceSlots(std::size_t count) : taken_(count) {}
  SequenceSlots(const SequenceSlots&) = delete;
  SequenceSlots& operator=(const SequenceSlots&) = delete;

  std::size_t count() const { return taken_.size(); }
  // The free one with the least number, if there is one.
  std::optional<Slot> Take() {
    for (SequenceId id = 0; id < taken_.size(); ++id) {
      if (taken_[id]) continue;
      taken_[id] = true;
      return Slot(*this, id);
    }
    return std::nullopt;
  }

 private:
  std::vector<bool> taken_;
};

}  // namespace troupe
