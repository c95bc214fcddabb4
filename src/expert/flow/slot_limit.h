// How many of its planned slots a cache of experts may use now, by what the machine has free: fewer
// as soon as memory is short, and more again once it has been there for a while. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/clock.h"

namespace troupe {

// What others are to be left, at least: below `low` slots are given back, until there is `enough`.
struct MemoryMarks {
  Bytes low, enough;

  // Of what was left to others when the budget was chosen by what was free: the budget fits as long
  // as half of that is still there.
  static MemoryMarks OfChosen(Bytes for_others) {
    return {.low = Bytes(for_others.count() / 2), .enough = Bytes(for_others.count() / 4 * 3)};
  }
  // Of a budget that the user has named: it stays until the system is about to kill somebody. Where
  // little is left to others a part of it is gone before anything can be given back.
  static MemoryMarks OfNamed(Bytes for_others) {
    const std::uint64_t all = for_others.count();
    return {.low = Bytes(std::min(std::max(all / 8, (32_MiB).count()), all / 2)),
            .enough = Bytes(std::min(std::max(all / 4, (64_MiB).count()), all / 4 * 3))};
  }
  bool operator==(const MemoryMarks&) const = default;
};

// When to look again: soon enough to see half of what is left above the mark still there, if it
// goes on falling as it did; `every` at the latest, a twentieth of it at the earliest.
Nanos LookAgainIn(std::int64_t fell, Nanos within, std::int64_t above_mark, Nanos every);

class SlotLimit {
 public:
  struct Options {
    std::uint32_t most = 0;   // as planned
    std::uint32_t least = 0;  // that passes need
    Bytes slot;
    Bytes planned;  // what the process may come to with the most
    MemoryMarks marks;
    // The user has named the budget: what the process has not taken of it yet is not looked at.
    bool named = false;
    Nanos lasting = 15'000'000'000;   // that memory has to be there before it is taken again,
    Nanos longest = 300'000'000'000;  // or so long where it was short again soon after
  };
  struct Reading {
    Bytes free;                     // that anybody may still take
    Bytes held;                     // by this process
    std::uint32_t with_memory = 0;  // slots: the others have none yet
  };

  explicit SlotLimit(const Options& options) : options_(options), slots_(options.most) {}

  // The number of slots from now on.
  std::uint32_t Look(const Reading& reading, Nanos now);

  std::uint32_t slots() const { return slots_; }
  // What others would have if this process took all that it may; less than nothing where it does
  // not fit.
  std::int64_t Spare(const Reading& reading) const;
  Nanos waits() const { return wait_ ? *wait_ : options_.lasting; }

 private:
  void GiveBack(const Reading& reading, std::int64_t spare, Nanos now);
  void TakeAgain(std::int64_t spare, Nanos now);

  Options options_;
  std::uint32_t slots_;
  std::optional<Nanos> there_since_;  // memory for more
  std::uint32_t room_ = 0;            // since then: slots that fit at each look
  std::optional<Nanos> taken_at_;
  std::optional<Nanos> wait_;  // absent: lasting
};

}  // namespace troupe
