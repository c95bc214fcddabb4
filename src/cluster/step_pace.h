// When the next step of a plan may be read from the own disk: passes wait while it is, so as much
// time as one took is left to them before the next. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace troupe {

class StepPace {
 public:
  void OnRead(Nanos began, Nanos ended) {
    const Nanos took = std::max<Nanos>(0, ended - began);
    read_ += took;
    rests_until_ = ended + std::min(took, kLongestRest);
  }
  bool MayRead(Nanos now) const { return now >= rests_until_; }
  double read_seconds() const { return static_cast<double>(read_) * 1e-9; }

  // A step had to wait.
  void OnRested() { ++rests_; }
  std::uint64_t rests() const { return rests_; }

 private:
  static constexpr Nanos kLongestRest = 5'000'000'000;
  Nanos rests_until_ = 0;
  Nanos read_ = 0;
  std::uint64_t rests_ = 0;
};

}  // namespace troupe
