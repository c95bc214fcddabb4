// How long a lane was at work, of pieces of work that are told when they are over. Pieces come
// about in the order in which they ended; what several did at the same time counts once. Pure.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace troupe {

class BusyTime {
 public:
  void Add(Nanos begin, Nanos end) {
    const Nanos from = std::max(begin, until_);
    if (end <= from) return;
    busy_ += end - from;
    until_ = end;
  }

  double seconds() const { return static_cast<double>(busy_) * 1e-9; }

 private:
  Nanos busy_ = 0, until_ = 0;
};

}  // namespace troupe
