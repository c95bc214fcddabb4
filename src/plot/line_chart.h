// Draws curves over a common axis, each with its name at its end.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plot/svg.h"

namespace troupe {

enum class LineDash { kSolid, kDashed, kDotted, kDashDotted };

struct LineSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x rises
  LineDash dash = LineDash::kSolid;               // kDashed: a reference
  std::optional<std::size_t> colour = {};         // the n-th; absent: the next one
  std::vector<std::string> hints = {};            // of each point where the pointer rests, or none
  // The interval of y at each point, or none; drawn as far as the plot reaches.
  std::vector<std::pair<double, double>> spans = {};
};

enum class AxisUnit { kNumber, kPercent };  // of a share, 0.25 is 25 %

struct LineChart {
  std::string title, subtitle;
  std::string x_label, y_label;
  AxisUnit x_unit = AxisUnit::kNumber, y_unit = AxisUnit::kNumber;
  std::optional<double> y_least, y_most;  // absent: what the points need
  bool log_x = false;                     // x is positive
  bool dots = true;
  std::vector<LineSeries> series;
};

// A plot without points says so. On a phone the names are below it.
std::string ToSvg(const LineChart& chart, Screen screen = Screen::kDesk);

// Round numbers, about `about` of them, that cover the range.
std::vector<double> NiceTicks(double least, double most, int about);

}  // namespace troupe
