// How fast a medium gives what is read from it, as it is now: of what was read long ago little
// counts, so a disk that becomes slow after hours is known to be within seconds of reading. Pure.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/clock.h"

namespace troupe {

class MediumSpeed {
 public:
  // All that was read so far, and the time it took. A call with nothing new does nothing.
  void OnRead(std::uint64_t bytes, double busy_seconds, Nanos now) {
    const double more = busy_seconds - busy_seen_;
    if (more <= 0) return;
    const double kept = std::exp2(-more / kHalfLifeSeconds);
    bytes_ = bytes_ * kept + static_cast<double>(bytes - bytes_seen_);
    busy_ = busy_ * kept + more;
    bytes_seen_ = bytes;
    busy_seen_ = busy_seconds;
    read_at_ = now;
  }

  // 0: nothing was read yet.
  double measured() const { return bytes_ > 0 ? bytes_ / busy_ : 0; }

  // What was slow once would not be read from where others are quicker, and never be known to be
  // fast again: after a while without reads it is thought to be what it was `probed` to be, if that
  // is better.
  double Expected(double probed, Nanos now) const {
    const double known = measured();
    if (known <= 0 || known >= probed) return known;
    const double kept = std::exp2(-static_cast<double>(now - read_at_) / kHopeHalfLife);
    return kept * known + (1 - kept) * probed;
  }

 private:
  static constexpr double kHalfLifeSeconds = 2;  // of reading
  static constexpr double kHopeHalfLife = 60e9;  // of not reading
  std::uint64_t bytes_seen_ = 0;
  double busy_seen_ = 0;
  double bytes_ = 0, busy_ = 0;
  Nanos read_at_ = 0;
};

}  // namespace troupe
