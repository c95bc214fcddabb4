// How long a new answer would wait in the cloud: by the load that the cloud told last, what this
// end has sent there since, and the time that has passed. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/clock.h"
#include "split/wire/cloud_load.h"

namespace troupe {

class CloudQueue {
 public:
  // `own_runs`: answers of this end that are there now. What was sent within a round trip it did
  // not know when it told.
  void OnTold(const CloudLoad& load, std::size_t own_runs, double round_trip_seconds, Nanos now);
  // This end has sent a prompt of that length.
  void OnSent(std::size_t tokens, Nanos now);
  // It was taken back before it was read.
  void OnTakenBack(std::size_t tokens, Nanos now);

  // For sequences, and for prompts that are read before.
  double WaitSeconds(std::size_t own_runs, std::uint32_t sequences, Nanos now) const;
  // For these prompts alone.
  double ReadsSeconds(Nanos now) const { return ToRead(now) * load_.read_seconds; }

 private:
  struct Sent {
    Nanos at = 0;
    double tokens = 0;
  };

  double ToRead(Nanos now) const;
  void Add(double tokens, Nanos now);

  CloudLoad load_;          // as it was told last
  std::size_t others_ = 0;  // answers there beside this end's, of then
  double to_read_ = 0;      // tokens, at
  Nanos at_ = 0;
  std::deque<Sent> sent_;  // in the last seconds
};

}  // namespace troupe
