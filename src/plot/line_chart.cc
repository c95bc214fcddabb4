#include "plot/line_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "plot/svg.h"

namespace troupe {
namespace {

constexpr double kHeadroom = 18, kBottom = 54, kTitleLeft = 20;
constexpr double kWidth = 720, kLeastPlotWidth = 360, kLeastHeight = 400;
constexpr double kApart = 15;                    // of names
constexpr double kCoincide = 2.5;                // lines that are no further apart
constexpr double kLineWidth = 2, kBorder = 3.5;  // of what shows of a line beneath another
constexpr double kSample = 18, kNameLeft = 34;   // right of the plot: a piece of the line, its name
constexpr double kPhoneRight = 26, kPhoneHeight = 250;  // of the plot; names are below it
// Okabe and Ito's colours, which people with any colour vision tell apart.
constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#666666", "#b8a800"};

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  void Add(double v) {
    least = std::min(least, v);
    most = std::max(most, v);
  }
  void Widen() {
    if (most > least) return;
    least -= 0.5;
    most += 0.5;
  }
};

std::string_view DashesOf(LineDash dash) {
  constexpr std::array<std::string_view, 4> kDashes = {"", "6 4", "2 3", "8 3 2 3"};
  return kDashes[static_cast<std::size_t>(dash)];
}

std::string Label(double value, AxisUnit unit) {
  if (unit == AxisUnit::kPercent) return fmt::format("{:g} %", std::round(value * 1e6) / 1e4);
  if (std::abs(value) >= 1e6) return fmt::format("{:g} M", value / 1e6);
  if (std::abs(value) >= 1e4) return fmt::format("{:g} k", value / 1e3);
  return fmt::format("{:g}", std::round(value * 1e6) / 1e6);
}

std::vector<double> TicksOf(Range y) {
  std::vector<double> ticks = NiceTicks(y.least, y.most, 6);
  std::erase_if(ticks,
                [y](double tick) { return tick < y.least - 1e-12 || tick > y.most + 1e-12; });
  return ticks;
}

// The size of the plot: all charts are as wide unless names or a title want more, the ticks' labels
// have room beside the axis's, and it is high enough that the names at its right do not overlap.
struct Frame {
  Heading heading;
  bool names_below;
  double left = 0, top = 0, right = 0, bottom = 0, width = 0, height = 0;

  Frame(const LineChart& chart, Range y, Screen screen)
      : heading(chart.title, chart.subtitle, screen), names_below(screen == Screen::kPhone) {
    std::size_t longest_tick = 1, longest_name = 0;
    for (const double tick : TicksOf(y)) {
      longest_tick = std::max(longest_tick, Label(tick, chart.y_unit).size());
    }
    for (const LineSeries& series : chart.series) {
      longest_name = std::max(longest_name, series.name.size());
    }
    left = 38 + TextWidth(longest_tick);
    top = heading.bottom() + kHeadroom;
    const double all_names = kApart * static_cast<double>(chart.series.size());
    if (names_below) {
      width = kPhoneWidth;
      right = width - kPhoneRight;
      bottom = top + kPhoneHeight;
      height = bottom + kBottom + all_names + 4;
      return;
    }
    const double names = kNameLeft + 12 + 7.7 * static_cast<double>(longest_name);
    right = left + std::max(kLeastPlotWidth, kWidth - left - names);
    width = std::max(right + names, 2 * kTitleLeft + 9.8 * static_cast<double>(chart.title.size()));
    height = std::max(kLeastHeight, top + kBottom + all_names);
    bottom = height - kBottom;
  }
};

class Axes {
 public:
  Axes(const LineChart& chart, const Frame& frame, Range x, Range y)
      : chart_(chart), frame_(frame), x_(x), y_(y) {}
  double X(double v) const {
    const auto map = [this](double a) { return chart_.log_x ? std::log2(a) : a; };
    const double share = (map(v) - map(x_.least)) / (map(x_.most) - map(x_.least));
    return frame_.left + share * (frame_.right - frame_.left);
  }
  double Y(double v) const {
    return frame_.bottom - (v - y_.least) / (y_.most - y_.least) * (frame_.bottom - frame_.top);
  }

  void Draw(Svg& svg) const {
    for (const double tick : TicksOf(y_)) {
      svg.AddLine(frame_.left, Y(tick), frame_.right, Y(tick), "#e4e4e4", 1);
      svg.AddText(frame_.left - 8, Y(tick) + 4, Label(tick, chart_.y_unit),
                  {.colour = "#666", .anchor = Anchor::kEnd});
    }
    for (const double tick : XTicks()) {
      svg.AddLine(X(tick), frame_.bottom, X(tick), frame_.bottom + 5, "#999", 1);
      svg.AddText(X(tick), frame_.bottom + 19, Label(tick, chart_.x_unit),
                  {.colour = "#666", .anchor = Anchor::kMiddle});
    }
    svg.AddLine(frame_.left, frame_.bottom, frame_.right, frame_.bottom, "#999", 1);
    svg.AddText((frame_.left + frame_.right) / 2, frame_.bottom + kBottom - 12, chart_.x_label,
                {.size = 13, .anchor = Anchor::kMiddle});
    svg.AddText(18, (frame_.top + frame_.bottom) / 2, chart_.y_label,
                {.size = 13, .anchor = Anchor::kMiddle, .turned = -90});
  }

 private:
  std::vector<double> XTicks() const {
    std::vector<double> ticks;
    if (chart_.log_x) {
      const double most_ticks = frame_.names_below ? 6 : 24;
      const double step =
          std::exp2(std::ceil((std::log2(x_.most) - std::log2(x_.least) + 1) / most_ticks));
      for (double v = std::exp2(std::ceil(std::log2(x_.least) - 1e-9)); v <= x_.most * 1.0001;
           v *= step) {
        ticks.push_back(v);
      }
      return ticks;
    }
    // If all x are whole numbers they are counts: no ticks in between.
    const bool whole = std::ranges::all_of(chart_.series, [](const LineSeries& series) {
      return std::ranges::all_of(series.points,
                                 [](const auto& p) { return p.first == std::floor(p.first); });
    });
    for (const double tick : NiceTicks(x_.least, x_.most, frame_.names_below ? 4 : 8)) {
      if (whole && std::abs(tick - std::round(tick)) > 1e-9) continue;
      if (tick >= x_.least - 1e-12 && tick <= x_.most + 1e-12) ticks.push_back(tick);
    }
    return ticks;
  }

  const LineChart& chart_;
  const Frame& frame_;
  Range x_, y_;
};

struct EndLabel {
  double y = 0;
  std::string_view name, colour, dashes;
};

// Moves labels apart: first down from the top, then up again from the bottom of the plot.
void Spread(std::vector<EndLabel>& labels, double bottom) {
  std::ranges::sort(labels, {}, &EndLabel::y);
  for (std::size_t i = 1; i < labels.size(); ++i) {
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + kApart);
  }
  double most = bottom;
  for (std::size_t i = labels.size(); i > 0; --i) {
    labels[i - 1].y = std::min(labels[i - 1].y, most);
    most = labels[i - 1].y - kApart;
  }
}

// What the points and their intervals need, with a margin, unless the chart says its own.
Range RangeOfY(const LineChart& chart) {
  Range y;
  for (const LineSeries& series : chart.series) {
    for (const auto& [px, py] : series.points) y.Add(py);
    for (const auto& [least, most] : series.spans) {
      if (std::isfinite(least)) y.Add(least);
      if (std::isfinite(most)) y.Add(most);
    }
  }
  const double margin = 0.06 * (y.most - y.least);
  y = {.least = chart.y_least.value_or(y.least - margin),
       .most = chart.y_most.value_or(y.most + margin)};
  y.Widen();
  return y;
}

Range RangeOfX(const LineChart& chart) {
  Range x;
  for (const LineSeries& series : chart.series) {
    for (const auto& point : series.points) x.Add(point.first);
  }
  return x;
}

using Places = std::vector<std::pair<double, double>>;

// Whether two lines lie on each other at half of their points or more.
bool Coincide(const Places& a, const Places& b) {
  std::size_t near = 0;
  for (const auto& [x, y] : a) {
    near += std::ranges::any_of(b, [&, x = x, y = y](const auto& other) {
      return std::abs(other.first - x) < 0.5 && std::abs(other.second - y) < kCoincide;
    });
  }
  return near > 0 && 2 * near >= std::min(a.size(), b.size());
}

// A line beneath others is wider by as many borders: it shows on both sides of them.
double WidthOf(std::size_t i, const std::vector<Places>& lines) {
  double width = kLineWidth;
  for (std::size_t above = i + 1; above < lines.size(); ++above) {
    if (Coincide(lines[i], lines[above])) width += kBorder;
  }
  return std::min(width, kLineWidth + 3 * kBorder);
}

}  // namespace

// The step is 1, 2, 2.5, 5 or 10 times a power of ten: the smallest that gives at most about
// `about` ticks.
std::vector<double> NiceTicks(double least, double most, int about) {
  const double rough = (most - least) / std::max(1, about);
  if (!(rough > 0) || !std::isfinite(rough)) return {least};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double nice : {1.0, 2.0, 2.5, 5.0}) {
    if (nice * power >= rough * 0.999) {
      step = nice * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double i = std::floor(least / step + 1e-9); i * step <= most + step * 1e-6; ++i) {
    ticks.push_back(i * step);
  }
  return ticks;
}

std::string ToSvg(const LineChart& chart, Screen screen) {
  Range x = RangeOfX(chart);
  const bool empty = x.least > x.most;
  const Range y = empty ? Range{.least = 0, .most = 1} : RangeOfY(chart);
  const Frame frame(chart, y, screen);
  Svg svg(frame.width, frame.height);
  frame.heading.Draw(svg);
  if (empty) {
    svg.AddText(frame.width / 2, frame.height / 2, "nothing to show", {.anchor = Anchor::kMiddle});
    return std::move(svg).Finish();
  }
  x.Widen();
  const Axes axes(chart, frame, x, y);
  axes.Draw(svg);
  std::vector<Places> lines(chart.series.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const auto& [px, py] : chart.series[i].points) {
      lines[i].emplace_back(axes.X(px), axes.Y(py));
    }
  }
  std::vector<EndLabel> labels;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const LineSeries& series = chart.series[i];
    const Places& places = lines[i];
    if (places.empty()) continue;
    const std::string_view colour = kColours[series.colour.value_or(i) % kColours.size()];
    const std::string_view dashes = DashesOf(series.dash);
    svg.AddPolyline(places, colour, dashes, WidthOf(i, lines));
    for (std::size_t p = 0; p < std::min(places.size(), series.spans.size()); ++p) {
      const auto& [least, most] = series.spans[p];
      svg.AddLine(places[p].first, axes.Y(std::clamp(least, y.least, y.most)), places[p].first,
                  axes.Y(std::clamp(most, y.least, y.most)), colour, 1);
    }
    for (std::size_t p = 0; chart.dots && p < places.size(); ++p) {
      svg.AddDot(
          places[p].first, places[p].second, 3.2, colour,
          fmt::format("{}: {} at {}", p < series.hints.size() ? series.hints[p] : series.name,
                      Label(series.points[p].second, chart.y_unit),
                      Label(series.points[p].first, chart.x_unit)));
    }
    labels.push_back(
        {.y = places.back().second + 4, .name = series.name, .colour = colour, .dashes = dashes});
  }
  if (frame.names_below) {  // in the order of the ends above
    std::ranges::stable_sort(labels, {}, &EndLabel::y);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i].y = frame.bottom + kBottom + kApart * static_cast<double>(i) + 8;
    }
  } else {
    Spread(labels, frame.bottom);
  }
  const double names = frame.names_below ? 0 : frame.right;
  for (const EndLabel& label : labels) {
    const double sample = names + 10;
    svg.AddPolyline(
        std::array{std::pair(sample, label.y - 4), std::pair(sample + kSample, label.y - 4)},
        label.colour, label.dashes);
    svg.AddText(names + kNameLeft, label.y, label.name,
                {.size = 12.5, .colour = label.colour, .bold = true});
  }
  return std::move(svg).Finish();
}

}  // namespace troupe
