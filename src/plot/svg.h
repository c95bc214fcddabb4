// The few shapes that the plots consist of, as SVG text, light or dark as the reader's screen is.
// line_chart.h, heat_map.h and timeline.h know the data.
#pragma once

#include <fmt/core.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

// With &, <, > and quotes as XML wants them. Characters that XML does not allow are left out, and
// invalid UTF-8 becomes a question mark.
std::string EscapeXml(std::string_view text);

// Limits a text to a number of bytes of UTF-8, cut between two characters; a text that was cut ends
// in "…".
std::string Shortened(std::string_view text, std::size_t most);

// What a picture is drawn for: beside others on a desk, or as wide as a phone (kPhoneWidth), with
// the same size of letters.
enum class Screen { kDesk, kPhone };
inline constexpr double kPhoneWidth = 364;
// Labels keep so far from a picture's right edge.
inline constexpr double kRightMargin = 8;

// The text's words in lines of `most` bytes at most; a longer word has a line of its own. At least
// one line.
std::vector<std::string> Wrapped(std::string_view text, std::size_t most);

enum class Anchor { kStart, kMiddle, kEnd };

// Of a number of bytes of text in the size that axes are labelled in.
double TextWidth(std::size_t bytes);

class Svg {
 public:
  // As large as it is drawn, or as wide as there is room.
  enum class Size { kAsDrawn, kFills };
  Svg(double width, double height, Size size = Size::kAsDrawn);

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

// A picture's title and what is said below it, in several lines on a phone.
class Heading {
 public:
  Heading(std::string_view title, std::string_view subtitle, Screen screen);
  double bottom() const;  // where its last line stands
  void Draw(Svg& svg) const;

 private:
  static constexpr double kTitleStep = 21, kSubtitleStep = 16;

  double left_;
  std::vector<std::string> title_, subtitle_;
};

}  // namespace troupe
