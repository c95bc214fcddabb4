#include "expert/prefetch/miss_foresight.h"

#include <fmt/core.h>

#include <array>

namespace troupe {

std::string_view ToString(NotEarlier reason) {
  constexpr std::array<std::string_view, 9> kReasons = {
      "nothing is read ahead",
      "the governor held reading ahead back",
      "not predicted",
      "predicted, but no more by the last guess",
      "in memory when predicted, given up since",
      "predicted, but its odds were below what the link asked for",
      "predicted, but no slot was free for it",
      "predicted too late",
      "predicted in time, but the link was busy"};
  return kReasons[static_cast<std::size_t>(reason)];
}

NotEarlier MissForesight::why() const {
  if (!reads_ahead) return NotEarlier::kNothingAhead;
  // One that was not measured yet may take any time.
  const bool too_late = load_seconds <= 0 || lead_seconds < load_seconds;
  if (ahead == 0) return held_back ? NotEarlier::kHeldBack : NotEarlier::kNotPredicted;
  if (under_way) return too_late ? NotEarlier::kTooLate : NotEarlier::kLinkBusy;
  if (taken_back) return NotEarlier::kTakenBack;
  if (!was_absent) return NotEarlier::kGivenUp;
  if (held_back) return NotEarlier::kHeldBack;
  if (odds < least_odds) return NotEarlier::kOddsTooLow;
  if (no_slot) return NotEarlier::kNoSlot;
  return too_late ? NotEarlier::kTooLate : NotEarlier::kLinkBusy;
}

std::string ToString(const MissForesight& foresight, std::uint32_t layer) {
  if (foresight.ahead == 0) return std::string(ToString(foresight.why()));
  return fmt::format("{}: by layer {}, with odds of {:.2f} (asked for: {:.2f}), {:.2f} ms before",
                     ToString(foresight.why()), layer - foresight.ahead, foresight.odds,
                     foresight.least_odds, foresight.lead_seconds * 1e3);
}

}  // namespace troupe
