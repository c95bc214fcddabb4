// What asking a peer costs, learned from its answers: the way there and back by the bytes that come
// back, computing by experts and rows, and waiting for its turn there. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "cluster/calls/running_line.h"
#include "expert/flow/miss_plan.h"

namespace troupe {

// A call that was answered. What it waited and computed is measured at the peer, all of it here:
// durations alone, so that clocks need not agree.
struct CallTimes {
  std::uint32_t experts = 1;
  std::uint32_t rows = 1;
  std::size_t row_bytes = 0;  // of each as it was sent back
  double seconds = 0;         // from sending to the last of the answer
  double waited = 0;          // of them, for its turn
  double computed = 0;
};

// Of all calls that were answered to the end, where their time went.
struct CallSeconds {
  std::uint64_t calls = 0, rows = 0;
  double waited = 0, computed = 0;  // at the peers
  double way = 0;                   // everything else: there and back

  void Add(const CallTimes& times);
};

class PeerSpeed {
 public:
  // `name` must outlive it. Before the first answer the round trip of the greeting is what is
  // known.
  PeerSpeed(std::string_view name, double round_trip_seconds, Nanos now);

  // By another link, or it has started anew.
  void OnGreeted(double round_trip_seconds);
  void OnAnswered(const CallTimes& times, Nanos now);
  // It was late or refused: until its next answer, its queue is taken to be this long at least.
  void OnLate(double seconds, Nanos now);

  // What is measured, of answers with so many bytes a row.
  Place Measured(std::size_t row_bytes) const;
  // What is expected of such answers. A peer of which nothing was heard lately is thought to be
  // better than it was measured, the more the longer: what was slow once would not be asked any
  // more, and so never be known to be fast again.
  Place Expected(Nanos now, std::size_t row_bytes) const;
  double round_trip_seconds() const { return way_.at_zero(); }
  // A call takes so much longer for each byte that it brings back; 0 while nothing is known.
  double byte_seconds() const { return way_.slope(); }

 private:
  std::string_view name_;
  double round_trip_;
  Nanos heard_;            // of it last
  RunningLine way_;        // by bytes
  RunningLine computing_;  // of an expert, by its rows
  double queue_ = 0;
};

}  // namespace troupe
