// The link that a replay loads experts over: one load at a time, demands before prefetches, each
// kind in the order in which it was asked for. A load that has begun is not called off, and does
// not stop for a demand. Times are seconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "expert/expert_id.h"

namespace troupe {

class ReplayLink {
 public:
  static constexpr double kNothing = std::numeric_limits<double>::infinity();

  // Bytes flow at one speed; a load that finds the link idle waits out its latency, too.
  explicit ReplayLink(double latency_seconds) : latency_(latency_seconds) {}

  // `seconds` of transfer.
  void Request(ExpertId id, double seconds, bool demand, double now);
  // A prefetch is wanted now: it goes before what was asked for after it.
  void Promote(ExpertId id);
  // False if it is too late: it has begun.
  bool Cancel(ExpertId id);

  // When the load under way ends; kNothing if the link is idle.
  double NextEnd() const { return current_ ? current_end_ : kNothing; }
  // Of transfer, before a demand that would be requested now begins.
  double SecondsAheadOfDemand(double now) const;
  // Of transfer, that are still to come of a load; 0 if it has ended.
  double SecondsLeft(ExpertId id, double now) const;
  // Appends what has ended by then, in order.
  void AdvanceTo(double now, std::vector<ExpertId>& ended);
  double busy_seconds() const { return busy_; }
  // The part of them that lies before `now`.
  double BusySeconds(double now) const {
    return busy_ - (current_ ? std::max(0.0, current_end_ - now) : 0);
  }

 private:
  struct Load {
    ExpertId id;
    double seconds = 0;
    std::uint64_t number = 0;  // of its request
  };
  void Begin(const Load& load, double now, double latency);

  double latency_;
  std::uint64_t requests_ = 0;
  std::deque<Load> demands_, prefetches_;
  std::optional<ExpertId> current_;
  double current_end_ = 0;
  double busy_ = 0;
};

}  // namespace troupe
