// Draws what several lanes did over time, a row of lanes for each of several stretches of time that
// begin at the left: where a lane did nothing, its ground shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

// What a lane may be doing.
struct TimelineKind {
  std::string name;
  std::string colour;  // "#rrggbb"
};

struct TimelineSpan {
  double begin = 0, end = 0;
  std::size_t kind = 0;
};

struct TimelineRow {
  std::string name, note;                        // at its left, at its end
  std::vector<std::vector<TimelineSpan>> lanes;  // as many as there are names of lanes
  std::vector<double> marks;                     // moments, drawn over the first lane
  double length = 0;
};

struct Timeline {
  std::string title, subtitle, x_label;
  std::vector<std::string> lanes;
  std::vector<TimelineKind> kinds;
  std::vector<TimelineRow> rows;
};

// One without rows says so.
std::string ToSvg(const Timeline& timeline);

}  // namespace troupe
