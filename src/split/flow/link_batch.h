// What the link carries where several messages are on it at a time: each takes as long as all of
// them together, so bytes that are through are counted over the time in which any was being sent.
// Told in batches: until nothing is on its way, or some are through. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace troupe {

class LinkBatch {
 public:
  struct Sample {
    std::size_t bytes = 0;
    double seconds = 0;             // in which any was on its way
    double round_trip_seconds = 0;  // of these: in which no byte could have been there yet
  };

  void OnSent() { ++on_way_; }
  // It was on its way for that time, of which a round trip is the way itself. Absent: others are to
  // come first.
  std::optional<Sample> OnThrough(std::size_t bytes, Nanos sent, Nanos through, Nanos round_trip) {
    bytes_ += bytes;
    on_way_times_.emplace_back(sent, through);
    sending_times_.emplace_back(std::min(sent + round_trip, through), through);
    return OnLost();
  }
  // It is not on its way any more, and nobody knows how far it came.
  std::optional<Sample> OnLost() {
    --on_way_;
    if (bytes_ == 0 || (on_way_ > 0 && on_way_times_.size() < kMost)) return std::nullopt;
    const double seconds = Growth(on_way_times_, on_way_until_);
    const double sending = Growth(sending_times_, sending_until_);
    return Sample{.bytes = std::exchange(bytes_, 0),
                  .seconds = seconds,
                  .round_trip_seconds = seconds - sending};
  }

 private:
  // Messages of a batch: those that are on their way at its end count in the next one.
  static constexpr std::size_t kMost = 16;
  using Times = std::vector<std::pair<Nanos, Nanos>>;

  // What these times cover behind `until`, which is then their end. Leaves none.
  static double Growth(Times& times, Nanos& until) {
    std::ranges::sort(times);
    Nanos covered = 0;
    for (const auto& [begin, end] : std::exchange(times, {})) {
      const Nanos from = std::max(begin, until);
      if (end <= from) continue;
      covered += end - from;
      until = end;
    }
    return static_cast<double>(covered) * 1e-9;
  }

  std::size_t on_way_ = 0, bytes_ = 0;
  Times on_way_times_, sending_times_;
  Nanos on_way_until_ = 0, sending_until_ = 0;
};

}  // namespace troupe
