#include "plot/timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "plot/line_chart.h"
#include "plot/svg.h"

namespace troupe {
namespace {

constexpr double kRowsLeft = 170, kRowsTop = 96, kLaneWidth = 900, kNoteWidth = 190;
constexpr double kLaneHeight = 15, kLanesApart = 2, kRowsApart = 14;
constexpr std::string_view kGround = "#e9e9e6", kMark = "#fefefe";
struct RowPlace {
  double y = 0;
  double Lane(std::size_t lane) const {
    return y + static_cast<double>(lane) * (kLaneHeight + kLanesApart);
  }
};

double RowHeight(const Timeline& timeline) {
  return static_cast<double>(timeline.lanes.size()) * (kLaneHeight + kLanesApart) + kRowsApart;
}

void DrawKinds(Svg& svg, const Timeline& timeline) {
  double x = kRowsLeft;
  for (const TimelineKind& kind : timeline.kinds) {
    svg.AddRect(x, 64, 12, 12, kind.colour);
    svg.AddText(x + 18, 74.5, kind.name, {.colour = "#333"});
    x += 44 + 6.8 * static_cast<double>(kind.name.size());
  }
}

void DrawRow(Svg& svg, const Timeline& timeline, const TimelineRow& row, RowPlace place,
             double scale) {
  svg.AddText(kRowsLeft - 74, place.Lane(0) + 12, row.name,
              {.colour = "#111", .anchor = Anchor::kEnd, .bold = true});
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    const double y = place.Lane(lane);
    svg.AddText(kRowsLeft - 6, y + 11.5, timeline.lanes[lane],
                {.size = 10.5, .colour = "#666", .anchor = Anchor::kEnd});
    svg.AddRect(kRowsLeft, y, row.length * scale, kLaneHeight, kGround);
    for (std::size_t kind = 0; kind < timeline.kinds.size(); ++kind) {
      std::string path;
      for (const TimelineSpan& span : row.lanes[lane]) {
        const double begin = std::clamp(span.begin, 0.0, row.length);
        const double length = std::clamp(span.end, begin, row.length) - begin;
        if (span.kind != kind || length <= 0) continue;
        path += fmt::format("M{:.2f} {:.1f}h{:.2f}v{:.0f}h{:.2f}z", kRowsLeft + begin * scale, y,
                            length * scale, kLaneHeight, -length * scale);
      }
      if (!path.empty()) svg.AddPath(path, timeline.kinds[kind].colour);
    }
  }
  for (const double mark : row.marks) {
    const double x = kRowsLeft + mark * scale;
    svg.AddLine(x, place.Lane(0), x, place.Lane(0) + kLaneHeight, kMark, 0.7);
  }
  svg.AddText(kRowsLeft + row.length * scale + kRightMargin, place.Lane(0) + 12, row.note,
              {.size = 11, .colour = "#666"});
}

}  // namespace

std::string ToSvg(const Timeline& timeline) {
  const double height =
      kRowsTop + static_cast<double>(timeline.rows.size()) * RowHeight(timeline) + 48;
  std::size_t longest_note = 0;
  for (const TimelineRow& row : timeline.rows) {
    longest_note = std::max(longest_note, row.note.size());
  }
  const double notes = std::max(kNoteWidth, 2 * kRightMargin + TextWidth(longest_note));
  Svg svg(kRowsLeft + kLaneWidth + notes, height, Svg::Size::kFills);
  svg.AddText(20, 26, timeline.title, {.size = 17, .colour = "#111", .bold = true});
  svg.AddText(20, 46, timeline.subtitle, {.size = 12.5, .colour = "#666"});
  double longest = 0;
  for (const TimelineRow& row : timeline.rows) longest = std::max(longest, row.length);
  if (longest <= 0) {
    svg.AddText(kRowsLeft, kRowsTop, "nothing to show");
    return std::move(svg).Finish();
  }
  DrawKinds(svg, timeline);
  const double scale = kLaneWidth / longest;
  for (std::size_t i = 0; i < timeline.rows.size(); ++i) {
    DrawRow(svg, timeline, timeline.rows[i],
            {.y = kRowsTop + static_cast<double>(i) * RowHeight(timeline)}, scale);
  }
  const double bottom = height - 42;
  svg.AddLine(kRowsLeft, bottom, kRowsLeft + kLaneWidth, bottom, "#999", 1);
  for (const double tick : NiceTicks(0, longest, 10)) {
    if (tick > longest) continue;
    const double x = kRowsLeft + tick * scale;
    svg.AddLine(x, bottom, x, bottom + 5, "#999", 1);
    svg.AddText(x, bottom + 18, fmt::format("{:g}", tick),
                {.colour = "#666", .anchor = Anchor::kMiddle});
  }
  svg.AddText(kRowsLeft + kLaneWidth / 2, bottom + 35, timeline.x_label,
              {.size = 13, .anchor = Anchor::kMiddle});
  return std::move(svg).Finish();
}

}  // namespace troupe
