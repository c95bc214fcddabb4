// One HTML page with pictures and a few words about each, for a desk and a phone, light or dark. It
// loads nothing from a network.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "plot/heat_map.h"
#include "plot/line_chart.h"

namespace troupe {

struct PageSection {
  std::string heading;
  std::string text;                                        // plain; blank lines part paragraphs
  std::vector<std::variant<LineChart, HeatMap>> pictures;  // side by side where there is room
};

struct HtmlPage {
  std::string title;
  std::string text;
  std::vector<PageSection> sections;
};

std::string ToHtml(const HtmlPage& page);

}  // namespace troupe
