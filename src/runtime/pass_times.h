// Where the time of the last passes went, moment by moment: what --explain-time and the plot of a
// timeline are made of. Is told by the experts' source while somebody watches, and costs nothing
// otherwise. What it shows of it is troupe/time_explained.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/clock.h"
#include "expert/flow/miss_event.h"
#include "expert/pass_facts.h"

namespace troupe {

struct TimeSpan {
  Nanos begin = 0, end = 0;

  Nanos length() const { return end - begin; }
  bool operator==(const TimeSpan&) const = default;
};

// From a moment at which reads began to one at which some were found to have ended.
struct ReadSpan {
  TimeSpan time;
  std::uint64_t bytes = 0;  // that had come

  bool operator==(const ReadSpan&) const = default;
};

// From a layer's choice of experts to the next one's, or to the end of the pass.
struct LayerTime {
  std::uint32_t layer = 0;
  TimeSpan time;
  Nanos stalled = 0;
  std::vector<MissEvent> misses;  // in the order in which they could be computed
};

struct TimedPass {
  std::uint64_t number = 0;  // of the decode passes watched
  TimeSpan time;
  std::vector<LayerTime> layers;
  std::vector<TimeSpan> stalls;
  std::vector<ReadSpan> reads;  // meanwhile, of whatever was read

  Nanos stalled() const;
  // Of its time, in which something was being read or lay ready.
  Nanos reading() const;
};

class PassTimes {
 public:
  // The last `kept` decode passes; those with rows of a prompt are not watched.
  explicit PassTimes(std::size_t kept) : kept_(kept) {}

  void OnPassBegins(const PassFacts& pass, Nanos now);
  void OnAsked(std::uint32_t layer, Nanos now);
  void OnStalled(const TimeSpan& time);
  void OnMiss(const MissEvent& miss);
  void OnReads(const TimeSpan& time, std::uint64_t bytes);
  void OnPassEnds(Nanos now);

  const std::deque<TimedPass>& passes() const { return passes_; }  // that have ended
  // Of those, the one that took longest; null if there is none.
  const TimedPass* Slowest() const;

 private:
  std::size_t kept_;
  std::uint64_t number_ = 0;
  bool under_way_ = false;
  TimedPass pass_;
  std::deque<TimedPass> passes_;
};

}  // namespace troupe
