// What tokens of an answer really take where it is being chosen: whether it stays there is decided
// by that, and not by what was predicted of that place. Pure.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace troupe {

class TokenPace {
 public:
  // More of its tokens have come. The first ones say nothing: they have waited for the prompt.
  void OnTokens(std::size_t tokens, Nanos now) {
    if (!has_begun_) {
      has_begun_ = true;
      since_ = now;
      return;
    }
    tokens_ += tokens;
    if (tokens_ < kEnoughTokens || now - since_ < kEnoughTime) return;
    seconds_ = static_cast<double>(now - since_) * 1e-9 / static_cast<double>(tokens_);
    tokens_ = 0;
    since_ = now;
  }
  // As new answers are expected to take there; until the first token has come. From then on the
  // place counts this one among those that it has.
  void Expect(double seconds) {
    if (!has_begun_) expected_ = seconds;
  }
  // From now on they come from elsewhere, or in another way.
  void Restart() { *this = {}; }

  bool has_begun() const { return has_begun_; }
  // A token, of the last ones, and before enough have come what was expected; 0: none has come, or
  // nobody can say.
  double Seconds() const {
    if (seconds_ > 0) return seconds_;
    return has_begun_ ? expected_ : 0;
  }

 private:
  // Tokens come in bursts: those of a draft that was right together, and those of a machine that
  // has a part of a processor in slices.
  static constexpr std::size_t kEnoughTokens = 16;
  static constexpr Nanos kEnoughTime = 500'000'000;

  bool has_begun_ = false;
  std::size_t tokens_ = 0;  // since
  Nanos since_ = 0;
  double seconds_ = 0, expected_ = 0;
};

}  // namespace troupe
