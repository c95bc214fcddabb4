// A virtual clock and what happens when by it: calls by time, those of one time in the order in
// which they were put in, so that a run depends on nothing but its input.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace troupe {

class Agenda final : public Clock {
 public:
  Nanos Now() const override { return now_; }
  double Seconds() const { return static_cast<double>(now_) * 1e-9; }

  void After(double seconds, std::function<void()> call) {
    TROUPE_CHECK(seconds >= 0);
    calls_.emplace(std::pair(now_ + static_cast<Nanos>(seconds * 1e9), ++last_), std::move(call));
  }

  // Goes on to the next call; false: there is none.
  bool RunNext() {
    if (calls_.empty()) return false;
    const auto next = calls_.extract(calls_.begin());
    now_ = next.key().first;
    next.mapped()();
    return true;
  }

 private:
  Nanos now_ = 0;
  std::uint64_t last_ = 0;
  std::map<std::pair<Nanos, std::uint64_t>, std::function<void()>> calls_;
};

}  // namespace troupe
