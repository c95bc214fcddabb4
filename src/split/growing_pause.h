// How long something is not tried after it has failed: a second, then two, up to a minute, until it
// does not fail. Failures within a pause count once. Pure.
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

class GrowingPause {
 public:
  // A try is over. True: a pause begins.
  bool OnOver(const Status& status, Nanos now) {
    if (status.ok()) pause_ = 0;
    if (status.ok() || status.code() == Code::kCancelled || IsPausedAt(now)) return false;
    pause_ = std::clamp(2 * pause_, kFirst, kMost);
    not_before_ = now + pause_;
    return true;
  }
  bool IsPausedAt(Nanos now) const { return now < not_before_; }

 private:
  static constexpr Nanos kFirst = 1'000'000'000, kMost = 60'000'000'000;

  Nanos not_before_ = 0, pause_ = 0;
};

}  // namespace troupe
