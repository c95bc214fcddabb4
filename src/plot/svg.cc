#include "plot/svg.h"

#include <array>

namespace troupe {

std::string EscapeXml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) escaped += c;
    }
  }
  return escaped;
}

Svg::Svg(double width, double height) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"system-ui, Helvetica, Arial, sans-serif\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
}

void Svg::AddText(double x, double y, std::string_view text, const Text& style) {
  constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};
  const std::string turned =
      style.turned == 0
          ? ""
          : fmt::format(" transform=\"rotate({:.0f} {:.1f} {:.1f})\"", style.turned, x, y);
  out_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" fill=\"{}\" text-anchor=\"{}\"{}{}>{}"
      "</text>\n",
      x, y, style.size, style.colour, kAnchors[static_cast<std::size_t>(style.anchor)],
      style.bold ? " font-weight=\"600\"" : "", turned, EscapeXml(text));
}

void Svg::AddLine(double x1, double y1, double x2, double y2, std::string_view colour,
                  double width) {
  out_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"{:.1f}\"/>\n",
      x1, y1, x2, y2, colour, width);
}

void Svg::AddPolyline(std::span<const std::pair<double, double>> points, std::string_view colour,
                      bool dashed) {
  std::string list;
  for (const auto& [x, y] : points) list += fmt::format("{:.1f},{:.1f} ", x, y);
  out_ += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" "
      "stroke-linejoin=\"round\"{}/>\n",
      list, colour, dashed ? " stroke-dasharray=\"6 4\"" : "");
}

void Svg::AddDot(double x, double y, double radius, std::string_view colour,
                 std::string_view hint) {
  out_ += fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"><title>{}</title></circle>\n",
      x, y, radius, colour, EscapeXml(hint));
}

void Svg::AddRect(double x, double y, double width, double height, std::string_view colour) {
  out_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
      width, height, colour);
}

void Svg::AddPath(std::string_view path, std::string_view colour) {
  out_ += fmt::format("<path d=\"{}\" fill=\"{}\"/>\n", path, colour);
}

std::string Svg::Finish() && { return std::move(out_) + "</svg>\n"; }

}  // namespace troupe
