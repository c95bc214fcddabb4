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

constexpr double kLeft = 70, kTop = 64, kBottom = 54;
constexpr double kPlotWidth = 540, kLeastHeight = 420;
constexpr double kApart = 15;                   // of names
constexpr double kSample = 18, kNameLeft = 34;  // right of the plot: a piece of the line, its name
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

// The size of the plot: high enough that the names at its right do not overlap.
struct Frame {
  double right = kLeft + kPlotWidth, bottom = 0, width = 0, height = 0;

  explicit Frame(const LineChart& chart) {
    std::size_t longest = 14;
    for (const LineSeries& series : chart.series) longest = std::max(longest, series.name.size());
    width = right + kNameLeft + 8 + 7.7 * static_cast<double>(longest);
    width = std::max(width, 40 + 9.8 * static_cast<double>(chart.title.size()));
    height =
        std::max(kLeastHeight, kTop + kBottom + kApart * static_cast<double>(chart.series.size()));
    bottom = height - kBottom;
  }
};

std::string Label(double value, AxisUnit unit) {
  if (unit == AxisUnit::kPercent) return fmt::format("{:g} %", std::round(value * 1e6) / 1e4);
  if (std::abs(value) >= 1e6) return fmt::format("{:g} M", value / 1e6);
  if (std::abs(value) >= 1e4) return fmt::format("{:g} k", value / 1e3);
  return fmt::format("{:g}", std::round(value * 1e6) / 1e6);
}

class Axes {
 public:
  Axes(const LineChart& chart, const Frame& frame, Range x, Range y)
      : chart_(chart), frame_(frame), x_(x), y_(y) {}
  double X(double v) const {
    const auto map = [this](double a) { return chart_.log_x ? std::log2(a) : a; };
    return kLeft + (map(v) - map(x_.least)) / (map(x_.most) - map(x_.least)) * kPlotWidth;
  }
  double Y(double v) const {
    return frame_.bottom - (v - y_.least) / (y_.most - y_.least) * (frame_.bottom - kTop);
  }

  void Draw(Svg& svg) const {
    for (const double tick : NiceTicks(y_.least, y_.most, 6)) {
      if (tick < y_.least - 1e-12 || tick > y_.most + 1e-12) continue;
      svg.AddLine(kLeft, Y(tick), frame_.right, Y(tick), "#e4e4e4", 1);
      svg.AddText(kLeft - 8, Y(tick) + 4, Label(tick, chart_.y_unit),
                  {.colour = "#666", .anchor = Anchor::kEnd});
    }
    for (const double tick : XTicks()) {
      svg.AddLine(X(tick), frame_.bottom, X(tick), frame_.bottom + 5, "#999", 1);
      svg.AddText(X(tick), frame_.bottom + 19, Label(tick, chart_.x_unit),
                  {.colour = "#666", .anchor = Anchor::kMiddle});
    }
    svg.AddLine(kLeft, frame_.bottom, frame_.right, frame_.bottom, "#999", 1);
    svg.AddText((kLeft + frame_.right) / 2, frame_.height - 12, chart_.x_label,
                {.size = 13, .anchor = Anchor::kMiddle});
    svg.AddText(18, (kTop + frame_.bottom) / 2, chart_.y_label,
                {.size = 13, .anchor = Anchor::kMiddle, .turned = -90});
  }

 private:
  std::vector<double> XTicks() const {
    std::vector<double> ticks;
    if (chart_.log_x) {
      for (double v = std::exp2(std::ceil(std::log2(x_.least) - 1e-9)); v <= x_.most * 1.0001;
           v *= 2) {
        ticks.push_back(v);
      }
      return ticks;
    }
    // If all x are whole numbers they are counts: no ticks in between.
    const bool whole = std::ranges::all_of(chart_.series, [](const LineSeries& series) {
      return std::ranges::all_of(series.points,
                                 [](const auto& p) { return p.first == std::floor(p.first); });
    });
    for (const double tick : NiceTicks(x_.least, x_.most, 8)) {
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

std::string ToSvg(const LineChart& chart) {
  const Frame frame(chart);
  Svg svg(frame.width, frame.height);
  svg.AddText(kLeft - 50, 26, chart.title, {.size = 17, .colour = "#111", .bold = true});
  svg.AddText(kLeft - 50, 46, chart.subtitle, {.size = 12.5, .colour = "#666"});
  Range x, y;
  for (const LineSeries& series : chart.series) {
    for (const auto& [px, py] : series.points) {
      x.Add(px);
      y.Add(py);
    }
  }
  if (x.least > x.most) {
    svg.AddText(frame.width / 2, frame.height / 2, "nothing to show", {.anchor = Anchor::kMiddle});
    return std::move(svg).Finish();
  }
  x.Widen();
  const double margin = 0.06 * (y.most - y.least);
  y = {.least = chart.y_least.value_or(y.least - margin),
       .most = chart.y_most.value_or(y.most + margin)};
  y.Widen();
  const Axes axes(chart, frame, x, y);
  axes.Draw(svg);
  std::vector<EndLabel> labels;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const LineSeries& series = chart.series[i];
    if (series.points.empty()) continue;
    const std::string_view colour = kColours[series.colour.value_or(i) % kColours.size()];
    const std::string_view dashes = DashesOf(series.dash);
    std::vector<std::pair<double, double>> places;
    for (const auto& [px, py] : series.points) places.emplace_back(axes.X(px), axes.Y(py));
    svg.AddPolyline(places, colour, dashes);
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
  Spread(labels, frame.bottom);
  for (const EndLabel& label : labels) {
    const double sample = frame.right + 10;
    svg.AddPolyline(
        std::array{std::pair(sample, label.y - 4), std::pair(sample + kSample, label.y - 4)},
        label.colour, label.dashes);
    svg.AddText(frame.right + kNameLeft, label.y, label.name,
                {.size = 12.5, .colour = label.colour, .bold = true});
  }
  return std::move(svg).Finish();
}

}  // namespace troupe
