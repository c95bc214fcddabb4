// How many bytes of keys and values may be moved between two passes of an engine, so that answers
// under way do not wait for long: as many as the time holds that is left beside them, at the speed
// of what was moved before. Pure; whoever moves them measures.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/pass_gaps.h"

namespace troupe {

class MovePace {
 public:
  // Little while nothing was measured: whoever moves something moves one part of it at least.
  std::size_t Most(const PassGaps& gaps) const {
    constexpr std::uint32_t kAll = 1 << 30;
    if (!gaps.rows) return std::size_t{kAll} * kUnit;
    const auto seconds = [this](std::uint32_t units) {
      return SecondsFor(static_cast<double>(units) * kUnit);
    };
    return gaps.rows(seconds, kAll) * std::size_t{kUnit};
  }

  void Note(std::size_t bytes, double seconds) {
    bytes_ = kKept * bytes_ + static_cast<double>(bytes);
    seconds_ = kKept * seconds_ + seconds;
  }

 private:
  // What PassGaps counts as a row: the least that it gives is 16 of these, 4 MiB.
  static constexpr std::uint32_t kUnit = 1 << 18;
  static constexpr double kKept = 0.9;  // of what came before: speeds change

  double SecondsFor(double bytes) const { return bytes_ > 0 ? bytes * seconds_ / bytes_ : 0; }

  double bytes_ = 0, seconds_ = 0;
};

}  // namespace troupe
