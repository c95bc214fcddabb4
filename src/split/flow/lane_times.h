// How long each side was at work on answers, and how long it was not while there were some: what
// overlaps of the two and what stands still. Pure.
#pragma once

#include <array>
#include <cstddef>

#include "base/clock.h"
#include "split/flow/side.h"

namespace troupe {

class LaneTimes {
 public:
  using Lanes = std::array<bool, 2>;  // by Side
  using Seconds = std::array<double, 2>;

  // From now on; what was so at the last call counts as so up to this one.
  void Look(bool any_answers, const Lanes& busy, Nanos now) {
    const double passed = static_cast<double>(now - until_) * 1e-9;
    for (std::size_t i = 0; any_answers_ && i < busy_.size(); ++i) {
      (busy_[i] ? busy_seconds_ : idle_seconds_)[i] += passed;
    }
    until_ = now;
    any_answers_ = any_answers;
    busy_ = busy;
  }

  const Seconds& busy_seconds() const { return busy_seconds_; }
  const Seconds& idle_seconds() const { return idle_seconds_; }

 private:
  Nanos until_ = 0;
  bool any_answers_ = false;
  Lanes busy_ = {};
  Seconds busy_seconds_ = {}, idle_seconds_ = {};
};

}  // namespace troupe
