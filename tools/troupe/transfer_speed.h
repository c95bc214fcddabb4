// How fast something comes and how long it will take: of the last seconds, as a connection is not
// as fast as it was an hour ago, and what was here before did not come at all. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace troupe {

class TransferSpeed {
 public:
  // `done` bytes are here `seconds` after the start.
  void Note(double seconds, Bytes done);

  std::optional<double> bytes_per_second() const;  // nothing: not known yet
  // "12.3 MiB/s, 4 min left"; of `left` bytes.
  std::string Text(Bytes left) const;

 private:
  struct Point {
    double seconds = 0;
    Bytes done;
  };
  std::deque<Point> points_;
};

// "45 s", "12 min", "3.4 h"
std::string TimeText(double seconds);

}  // namespace troupe
