#include "expert/flow/slot_limit.h"

#include <algorithm>

namespace troupe {

Nanos LookAgainIn(std::int64_t fell, Nanos within, std::int64_t above_mark, Nanos every) {
  constexpr Nanos kOftener = 20;
  if (fell <= 0 || above_mark <= 0) return every;
  const double left =
      static_cast<double>(within) * static_cast<double>(above_mark) / static_cast<double>(fell);
  return static_cast<Nanos>(
      std::clamp(left / 2, static_cast<double>(every / kOftener), static_cast<double>(every)));
}

std::int64_t SlotLimit::Spare(const Reading& reading) const {
  const auto of = [](Bytes bytes) { return static_cast<std::int64_t>(bytes.count()); };
  // What is still to be taken; less than nothing as long as the cache has yet to give back.
  std::int64_t to_come =
      of(options_.planned) - of((options_.most - slots_) * options_.slot) - of(reading.held);
  if (options_.named) to_come = std::min<std::int64_t>(to_come, 0);
  return of(reading.free) - to_come;
}

std::uint32_t SlotLimit::Look(const Reading& reading, Nanos now) {
  const std::int64_t spare = Spare(reading);
  if (spare < static_cast<std::int64_t>(options_.marks.low.count())) {
    GiveBack(reading, spare, now);
  } else if (slots_ < options_.most) {
    TakeAgain(spare, now);
  }
  return slots_;
}

void SlotLimit::GiveBack(const Reading& reading, std::int64_t spare, Nanos now) {
  there_since_.reset();
  // Slots without memory are no help where they were not counted.
  const std::uint32_t from = options_.named ? std::min(slots_, reading.with_memory) : slots_;
  const auto slot = static_cast<std::int64_t>(options_.slot.count());
  const std::int64_t lacks = static_cast<std::int64_t>(options_.marks.enough.count()) - spare;
  const std::int64_t left = std::int64_t{from} - (lacks + slot - 1) / slot;
  const auto slots =
      static_cast<std::uint32_t>(std::max<std::int64_t>(left, std::min(options_.least, slots_)));
  if (slots >= slots_) return;
  slots_ = slots;
  // Taken too soon: who needs the memory comes and goes.
  constexpr int kSoon = 4;
  const bool soon = taken_at_ && now - *taken_at_ < kSoon * waits();
  if (taken_at_) wait_ = soon ? std::min(2 * waits(), options_.longest) : options_.lasting;
  taken_at_.reset();
}

void SlotLimit::TakeAgain(std::int64_t spare, Nanos now) {
  // A few slots are not worth the trouble, unless they are all that is missing.
  constexpr std::uint32_t kWorth = 16;
  const std::uint32_t missing = options_.most - slots_;
  const std::uint32_t worth = std::min(missing, std::max(options_.most / kWorth, 1U));
  const std::int64_t over = spare - static_cast<std::int64_t>(options_.marks.enough.count());
  const auto room = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      over / static_cast<std::int64_t>(options_.slot.count()), 0, missing));
  if (room < worth) {
    there_since_.reset();
    return;
  }
  room_ = there_since_ ? std::min(room_, room) : room;
  if (!there_since_) there_since_ = now;
  if (now - *there_since_ < waits()) return;
  slots_ += room_;
  taken_at_ = now;
  there_since_.reset();
}

}  // namespace troupe
