// How long to wait before a peer is dialled again: twice as long after each failure, up to a limit.
// A link that lasted as long as the last pause begins anew; one that opens and ends at once does
// not. Pure: time comes in as an argument.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace troupe {

class RedialPause {
 public:
  RedialPause(Nanos first, Nanos longest) : first_(first), longest_(longest) {}

  // After an attempt that brought no link, or one that was open for `open`.
  Nanos After(Nanos open) {
    if (open >= last_) last_ = 0;
    last_ = last_ == 0 ? first_ : std::min(2 * last_, longest_);
    return last_;
  }

 private:
  Nanos first_, longest_;
  Nanos last_ = 0;
};

}  // namespace troupe
