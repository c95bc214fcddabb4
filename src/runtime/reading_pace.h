// What a token of a prompt takes where prompts are read one behind the other: all time that passes
// meanwhile, with the answers that ride in their passes, and with what is done between passes.
// Pure.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace troupe {

class ReadingPace {
 public:
  void PassBegins(Nanos now) {
    if (!reads_on_) from_ = now;
  }
  // `tokens` of prompts were read; `reads_on`: some are left.
  void PassEnded(std::uint64_t tokens, bool reads_on, Nanos now) {
    if (tokens > 0) {
      tokens_ += static_cast<double>(tokens) - kNewest * tokens_;
      seconds_ += static_cast<double>(now - from_) * 1e-9 - kNewest * seconds_;
      from_ = now;
    }
    reads_on_ = reads_on;
  }

  // The mean over recent passes; 0 before the first one.
  double token_seconds() const { return tokens_ > 0 ? seconds_ / tokens_ : 0; }

 private:
  static constexpr double kNewest = 0.1;

  double tokens_ = 0, seconds_ = 0;
  bool reads_on_ = false;
  Nanos from_ = 0;
};

}  // namespace troupe
