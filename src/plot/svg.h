// The few shapes that the plots consist of, as SVG text, light or dark as the reader's screen is.
// line_chart.h, heat_map.h and timeline.h know the data.
#pragma once

#include <fmt/core.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

// With &, <, > and quotes as XML wants them. Characters that XML does not allow are left out, and
// invalid UTF-8 becomes a question mark.
std::string EscapeXml(std::string_view text);

// Limits a text to a number of bytes of UTF-8, cut between two characters; a text that was cut ends
// in "…".
std::string Shortened(std::string_view text, std::size_t most);

enum class Anchor { kStart, kMiddle, kEnd };

// Of a number of bytes of text in the size that axes are labelled in.
double TextWidth(std::size_t bytes);

class Svg {
 public:
  Svg(double width, double height);

  struct Text {
    double size = 12;
    std::string_view colour = "#333";
    Anchor anchor = Anchor::kStart;
    bool bold = false;
    double turned = 0;  // degrees, about its own place
  };
  void AddText(double x, double y, std::string_view text, const Text& style);
  void AddText(double x, double y, std::string_view text) { AddText(x, y, text, Text()); }
  void AddLine(double x1, double y1, double x2, double y2, std::string_view colour, double width);
  // `dashes`: lengths of strokes and gaps in turn, "6 4"; empty: none.
  void AddPolyline(std::span<const std::pair<double, double>> points, std::string_view colour,
                   std::string_view dashes, double width = 2);
  // `hint` is shown where the pointer rests.
  void AddDot(double x, double y, double radius, std::string_view colour, std::string_view hint);
  void AddRect(double x, double y, double width, double height, std::string_view colour);
  // Data of a path element, for many rectangles of one colour.
  void AddPath(std::string_view path, std::string_view colour);

  std::string Finish() &&;

 private:
  std::string out_;
};

}  // namespace troupe
