// How the time of passes divides between computing and reading.
#pragma once

#include <algorithm>

namespace troupe {

// The three add up to the passes' time.
struct PassTime {
  double computing_seconds = 0;   // with nothing being read
  double overlapped_seconds = 0;  // computing while something was read
  double stall_seconds = 0;       // waiting for what was read
};

// From the time of passes, that in which something was read, and the part of it that was waited
// for. What is read between passes counts as read in them, as far as their time reaches.
inline PassTime SplitPassTime(double seconds, double reading_seconds, double stall_seconds) {
  const double all = std::max(0.0, seconds);
  const double stall = std::clamp(stall_seconds, 0.0, all);
  const double overlapped = std::clamp(reading_seconds - stall, 0.0, all - stall);
  return {.computing_seconds = all - stall - overlapped,
          .overlapped_seconds = overlapped,
          .stall_seconds = stall};
}

}  // namespace troupe
