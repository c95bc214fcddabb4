// The end of a wait with a limit. A wait without an end stays endless, and one too long for Nanos
// does not wrap around.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "base/clock.h"

namespace troupe {

inline constexpr Nanos kForever = std::numeric_limits<Nanos>::max();

class Deadline {
 public:
  // nullopt: never. The clock must outlive it.
  Deadline(const Clock& clock, std::optional<Nanos> wait) : clock_(clock) {
    const Nanos now = clock.Now();
    if (wait.has_value() && *wait < kForever - now) at_ = now + *wait;
  }

  // 0 once it has passed, kForever if it never will.
  Nanos Left() const { return at_ == kForever ? kForever : std::max<Nanos>(at_ - clock_.Now(), 0); }

 private:
  const Clock& clock_;
  Nanos at_ = kForever;
};

}  // namespace troupe
