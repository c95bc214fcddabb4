// How fast a medium gives what is read, by the reads that were seen from their beginning to their
// end. A read's end is noticed when the loop comes by, which may be long after it: what lies ready
// while others compute, or while nobody asks for anything, says nothing of the medium. So time
// counts from a beginning on an idle medium, or from an end that was seen when it happened, to the
// next end that was. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace troupe {

struct SeenReads {
  std::uint64_t reads = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;

  bool operator==(const SeenReads&) const = default;
};

class ReadWatch {
 public:
  // An end that is noticed so late was still seen when it happened: little against a read.
  static constexpr Nanos kBlink = 100'000;

  // Reads were begun, from `began` to `now`, on a medium that had none under way.
  void OnBegun(Nanos began, Nanos now) {
    since_ = began;
    looked_ = now;
  }

  // Somebody looked from `began` to `now`, and so waited in between if nothing had come yet. `came`
  // has no time.
  void OnLooked(Nanos began, Nanos now, const SeenReads& came, bool more_under_way) {
    const bool seen = began - looked_ <= kBlink;
    looked_ = now;
    if (!seen) since_.reset();
    if (came.reads == 0) return;
    if (since_) {
      sum_.reads += came.reads;
      sum_.bytes += came.bytes;
      sum_.seconds += static_cast<double>(now - *since_) * 1e-9;
    }
    since_.reset();
    if (seen && more_under_way) since_ = now;
  }

  const SeenReads& sum() const { return sum_; }

 private:
  std::optional<Nanos> since_;
  Nanos looked_ = 0;
  SeenReads sum_;
};

}  // namespace troupe
