// How many times longer recent answers of one kind took than was predicted: what is predicted of
// the next ones is multiplied by it. A forecast knows who is before an answer, and not who comes
// beside it. Where nothing of that kind is measured any more the factor goes back to 1, so that it
// is tried again. Pure.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace troupe {

class ForecastFactor {
 public:
  // `expected`: with `factor`, the one of when it was predicted; other answers may have ended
  // since.
  void OnAnswer(double expected_seconds, double factor, double seconds, Nanos now) {
    if (expected_seconds <= 0 || factor <= 0) return;
    const double found = std::clamp(factor * seconds / expected_seconds, kLeast, kMost);
    const double before = At(now);
    factor_ = before + kNewest * (found - before);
    at_ = now;
  }

  double At(Nanos now) const {
    const double halves = static_cast<double>(now - at_) / static_cast<double>(kHalves);
    return std::pow(factor_, std::exp2(-halves));
  }

 private:
  // What is rarely measured has to be learned from few, and not to be forgotten soon. Beside others
  // in a busy cloud cuts were seen to take 13 times what was predicted.
  static constexpr double kNewest = 0.5, kLeast = 0.25, kMost = 16;
  static constexpr Nanos kHalves = 300'000'000'000;

  double factor_ = 1;
  Nanos at_ = 0;
};

}  // namespace troupe
