// Draws a table of numbers as colours, with a colour scale at its right.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plot/line_chart.h"

namespace troupe {

struct HeatMap {
  std::string title, subtitle;
  std::string x_label, y_label, value_label;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;             // row by row, the first on top
  std::vector<std::string> row_names;     // empty: their numbers, from `first_row` on
  std::vector<std::string> column_names;  // empty: their numbers, from 0 on
  std::size_t first_row = 0;
  AxisUnit unit = AxisUnit::kNumber;
  std::optional<double> least, most;  // absent: the values'; beyond them the colour is the end's
  bool numbers = false;               // in the cells, if there are few
};

std::string ToSvg(const HeatMap& map, Screen screen = Screen::kDesk);

// "#rrggbb" of a share of the scale, 0 to 1.
std::string HeatColour(double share);

}  // namespace troupe
