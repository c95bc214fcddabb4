// That lines of the log of requests are lost, as a disk is full: told once, and once more when they
// are written again, to be read later where somebody asks what has happened. Pure.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace troupe {

class TroubleNews {
 public:
  // `trouble`: why they are lost now; empty: they are written. What is to be said; empty: nothing.
  std::string Look(std::string_view trouble, Nanos now) {
    if (!trouble.empty()) {
      last_ = now;
      if (std::exchange(told_, true)) return {};
      return fmt::format("requests go on without their lines in the log: {}", trouble);
    }
    if (!told_ || now - last_ < kQuiet) return {};
    told_ = false;
    return "the log of requests is written again";
  }

 private:
  // A disk that is nearly full takes a line now and then.
  static constexpr Nanos kQuiet = 10 * Nanos{1'000'000'000};

  bool told_ = false;
  Nanos last_ = 0;  // when there was trouble
};

}  // namespace troupe
