#include "plot/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "plot/svg.h"

namespace troupe {
namespace {

constexpr double kAbove = 24, kBelow = 50;
constexpr double kLeastWidth = 640;  // as other plots, so that pages scale all alike
constexpr int kLevels = 48;          // of colour: more cannot be told apart

struct Colour {
  double r, g, b;
};
// Dark to light, after viridis, whose steps look equal to the eye.
constexpr std::array<Colour, 6> kStops = {
    {{68, 1, 84}, {65, 68, 135}, {42, 120, 142}, {34, 168, 132}, {122, 209, 81}, {253, 231, 37}}};

std::string Number(double value, AxisUnit unit) {
  if (unit == AxisUnit::kPercent) return fmt::format("{:.0f} %", 100 * value);
  return std::abs(value) < 10 ? fmt::format("{:.2f}", value) : fmt::format("{:.0f}", value);
}

// A label of the colour scale: short, and marked where values beyond it have the same colour.
std::string ScaleEnd(double value, AxisUnit unit, std::string_view beyond) {
  if (unit == AxisUnit::kPercent) return fmt::format("{}{:.3g} %", beyond, 100 * value);
  return fmt::format("{}{:.3g}", beyond, value);
}

// Which names to draw: every n-th, so that they do not touch.
std::size_t EveryNth(std::size_t count, double cell, double room) {
  std::size_t nth = 1;
  while (static_cast<double>(nth) * cell < room && nth < count) nth *= 2;
  return nth;
}

struct Layout {
  double above, left, cell_width, cell_height, width, height;
  bool turned_names;         // of columns
  double bottom;             // below the map
  double right;              // for the scale
  std::size_t longest_name;  // bytes
};

std::size_t Longest(const std::vector<std::string>& names, std::size_t most) {
  std::size_t longest = 3;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  return std::min(longest, most);
}

Layout LayoutOf(const HeatMap& map, const Heading& heading, Screen screen) {
  const bool phone = screen == Screen::kPhone;
  const std::size_t longest_name = phone ? 14 : 34;
  const double above = heading.bottom() + kAbove, right = phone ? 78 : 116;
  double left = (phone ? 34 : 46) + TextWidth(Longest(map.row_names, longest_name));
  const auto cell = [least = phone ? 0.5 : 2.0](double room, std::size_t count, double most) {
    return std::clamp(room / static_cast<double>(std::max<std::size_t>(count, 1)), least, most);
  };
  const double room = kPhoneWidth - left - right;
  double cell_width = cell(phone ? room : 620, map.columns, 60),
         cell_height = cell(phone ? 300 : 420, map.rows, 34);
  // A map with the same things along both axes is drawn as a square, unless it is a small table.
  if (map.rows == map.columns && map.rows > 12) {
    cell_width = cell_height = cell(phone ? room : 560, map.rows, 34);
  }
  const double longest = TextWidth(Longest(map.column_names, longest_name));
  const bool turned = !map.column_names.empty() && longest > cell_width;
  const double bottom = turned ? 30 + 0.62 * longest + (map.x_label.empty() ? 0 : 20) : kBelow;
  // A turned name reaches to the left of its column.
  if (turned && !phone) left = std::max(left, 0.82 * longest - cell_width / 2 + 10);
  return {.above = above,
          .left = left,
          .cell_width = cell_width,
          .cell_height = cell_height,
          .width = left + cell_width * static_cast<double>(map.columns) + right,
          .height = above + cell_height * static_cast<double>(map.rows) + bottom,
          .turned_names = turned,
          .bottom = bottom,
          .right = right,
          .longest_name = longest_name};
}

void DrawScale(Svg& svg, const HeatMap& map, const Layout& at, double least, double most) {
  const auto [smallest, largest] = std::ranges::minmax(map.values);
  const double x = at.width - at.right + (at.right < 100 ? 8 : 18);
  const double height = std::max(60.0, at.height - at.above - at.bottom);
  for (int level = 0; level < kLevels; ++level) {
    const double y = at.above + height * (kLevels - 1 - level) / kLevels;
    svg.AddRect(x, y, 14, height / kLevels + 0.6, HeatColour((level + 0.5) / kLevels));
  }
  for (const double share : {0.0, 0.5, 1.0}) {
    svg.AddText(x + 20,
                at.above + height * (1 - share) +
                    (share == 1   ? 10
                     : share == 0 ? 0
                                  : 4),
                ScaleEnd(least + share * (most - least), map.unit,
                         share == 1 && largest > most     ? "≥ "
                         : share == 0 && smallest < least ? "≤ "
                                                          : ""),
                {.size = 11, .colour = "#666"});
  }
  svg.AddText(at.width - kRightMargin, at.above - 10, map.value_label,
              {.size = 11, .colour = "#666", .anchor = Anchor::kEnd});
}

void DrawNames(Svg& svg, const HeatMap& map, const Layout& at) {
  const std::size_t every_row = EveryNth(map.rows, at.cell_height, 12);
  for (std::size_t r = 0; r < map.rows; r += every_row) {
    const std::string name = map.row_names.empty() ? fmt::format("{}", map.first_row + r)
                                                   : Shortened(map.row_names[r], at.longest_name);
    svg.AddText(at.left - 6, at.above + at.cell_height * (static_cast<double>(r) + 0.5) + 4, name,
                {.size = 11, .colour = "#555", .anchor = Anchor::kEnd});
  }
  const std::size_t every_column =
      EveryNth(map.columns, at.cell_width,
               map.column_names.empty() ? 22
               : at.turned_names        ? 14
                                        : TextWidth(Longest(map.column_names, at.longest_name)));
  const double bottom = at.above + at.cell_height * static_cast<double>(map.rows);
  for (std::size_t c = 0; c < map.columns; c += every_column) {
    const std::string name = map.column_names.empty()
                                 ? fmt::format("{}", c)
                                 : Shortened(map.column_names[c], at.longest_name);
    const double middle = at.left + at.cell_width * (static_cast<double>(c) + 0.5);
    if (at.turned_names) {
      svg.AddText(middle + 4, bottom + 14, name,
                  {.size = 11, .colour = "#555", .anchor = Anchor::kEnd, .turned = -35});
    } else {
      svg.AddText(middle, bottom + 15, name,
                  {.size = 11, .colour = "#555", .anchor = Anchor::kMiddle});
    }
  }
  svg.AddText(at.left + at.cell_width * static_cast<double>(map.columns) / 2, at.height - 10,
              map.x_label, {.size = 13, .anchor = Anchor::kMiddle});
  svg.AddText(16, (at.above + bottom) / 2, map.y_label,
              {.size = 13, .anchor = Anchor::kMiddle, .turned = -90});
}

}  // namespace

std::string HeatColour(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kStops.size() - 1);
  const std::size_t low = std::min<std::size_t>(static_cast<std::size_t>(at), kStops.size() - 2);
  const double part = at - static_cast<double>(low);
  const auto mix = [part](double a, double b) {
    return static_cast<int>(std::lround(a + part * (b - a)));
  };
  const Colour &a = kStops[low], &b = kStops[low + 1];
  return fmt::format("#{:02x}{:02x}{:02x}", mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b));
}

std::string ToSvg(const HeatMap& map, Screen screen) {
  const Heading heading(map.title, map.subtitle, screen);
  const Layout at = LayoutOf(map, heading, screen);
  const double words =
      90 + 7.2 * static_cast<double>(std::max(map.title.size() * 13 / 10, map.subtitle.size()));
  const double least_width = screen == Screen::kPhone ? kPhoneWidth : std::max(kLeastWidth, words);
  Svg svg(std::max(least_width, at.width), at.height);
  heading.Draw(svg);
  if (map.values.empty()) return std::move(svg).Finish();
  const double least = map.least.value_or(*std::ranges::min_element(map.values));
  double most = map.most.value_or(*std::ranges::max_element(map.values));
  if (!(most > least)) most = least + 1;
  // One path a colour: a map has thousands of cells and few colours.
  std::array<std::string, kLevels> paths;
  const auto share_of = [&](double value) { return (value - least) / (most - least); };
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    const int level =
        std::clamp(static_cast<int>(share_of(map.values[i]) * kLevels), 0, kLevels - 1);
    // A hair wider than the cell: no seams where a picture is scaled.
    paths[static_cast<std::size_t>(level)] +=
        fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z",
                    at.left + at.cell_width * static_cast<double>(i % map.columns),
                    at.above + at.cell_height * static_cast<double>(i / map.columns),
                    at.cell_width + 0.25, at.cell_height + 0.25, at.cell_width + 0.25);
  }
  for (int level = 0; level < kLevels; ++level) {
    const std::string& path = paths[static_cast<std::size_t>(level)];
    if (!path.empty()) svg.AddPath(path, HeatColour((level + 0.5) / kLevels));
  }
  // On a phone's narrow cells in small letters, or none.
  const double number_size = at.cell_width < 32 ? 8.5 : 11;
  const bool numbers = map.numbers && at.cell_width >= 22;
  for (std::size_t i = 0; numbers && i < map.values.size(); ++i) {
    svg.AddText(at.left + at.cell_width * (static_cast<double>(i % map.columns) + 0.5),
                at.above + at.cell_height * (static_cast<double>(i / map.columns) + 0.5) + 4,
                Number(map.values[i], map.unit),
                {.size = number_size,
                 .colour = share_of(map.values[i]) > 0.6 ? "#101010" : "#fdfdfd",
                 .anchor = Anchor::kMiddle});
  }
  DrawNames(svg, map, at);
  DrawScale(svg, map, at, least, most);
  return std::move(svg).Finish();
}

}  // namespace troupe
