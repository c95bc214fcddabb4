#include "plot/svg.h"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

// The greys of the plots and the colours of lines, as they are where the reader's screen is dark:
// bright, and each other than the rest. Marks on a cell's own colour have none of these.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kInTheDark = {{
    {"#fff", "#17181a"},
    {"#111", "#f2f2f0"},
    {"#333", "#dcdcd8"},
    {"#555", "#b4b4ae"},
    {"#666", "#a0a09a"},
    {"#999", "#6c6e72"},
    {"#e4e4e4", "#2e3034"},
    {"#e9e9e6", "#303236"},
    {"#fefefe", "#17181a"},
    {"#0072b2", "#5b8cff"},
    {"#d55e00", "#f08a4b"},
    {"#009e73", "#35c79a"},
    {"#cc79a7", "#de98c0"},
    {"#56b4e9", "#9adcff"},
    {"#666666", "#a4a8a4"},
    {"#b8a800", "#d8cf3a"},
    {"#e69f00", "#e69f00"},
}};

std::string DarkStyle() {
  std::string rules;
  for (const auto& [light, dark] : kInTheDark) {
    rules += fmt::format("[fill=\"{0}\"] {{ fill: {1} }} [stroke=\"{0}\"] {{ stroke: {1} }} ",
                         light, dark);
  }
  return fmt::format("<style>@media (prefers-color-scheme: dark) {{ {}}}</style>\n", rules);
}

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Bytes of the character that begins here, or 0 if none does.
std::size_t CharacterBytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!Continues(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  // Overlong forms, halves of surrogate pairs, and values beyond the last character.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) return 0;
  return bytes;
}

}  // namespace

std::string Shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr std::string_view kCut = "…";
  std::size_t end = most > kCut.size() ? most - kCut.size() : 0;
  while (end > 0 && Continues(text[end])) --end;
  return std::string(text.substr(0, end)).append(kCut);
}

std::vector<std::string> Wrapped(std::string_view text, std::size_t most) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (line.size() + 1 + word.size() <= most) {
      line.append(" ").append(word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

Heading::Heading(std::string_view title, std::string_view subtitle, Screen screen)
    : left_(screen == Screen::kPhone ? 10 : 20) {
  const bool phone = screen == Screen::kPhone;
  title_ = phone ? Wrapped(title, 36) : std::vector{std::string(title)};
  subtitle_ = phone ? Wrapped(subtitle, 48) : std::vector{std::string(subtitle)};
}

double Heading::bottom() const {
  return 46 + kTitleStep * static_cast<double>(title_.size() - 1) +
         kSubtitleStep * static_cast<double>(subtitle_.size() - 1);
}

void Heading::Draw(Svg& svg) const {
  double y = 26;
  for (const std::string& line : title_) {
    svg.AddText(left_, y, line, {.size = 17, .colour = "#111", .bold = true});
    y += kTitleStep;
  }
  y += 46 - 26 - kTitleStep;
  for (const std::string& line : subtitle_) {
    svg.AddText(left_, y, line, {.size = 12.5, .colour = "#666"});
    y += kSubtitleStep;
  }
}

std::string EscapeXml(std::string_view text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (const std::size_t bytes = CharacterBytes(text.substr(at)); bytes != 1) {
      escaped += bytes == 0 ? "?" : text.substr(at, bytes);
      at += bytes == 0 ? 0 : bytes - 1;
      continue;
    }
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
        if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) escaped += c;
    }
  }
  return escaped;
}

Svg::Svg(double width, double height, Size size) {
  const std::string shown = size == Size::kAsDrawn
                                ? fmt::format("width=\"{:.0f}\" height=\"{:.0f}\"", width, height)
                                : std::string("style=\"max-width: 100%; height: auto\"");
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" {} "
      "font-family=\"system-ui, Helvetica, Arial, sans-serif\">\n"
      "{}<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height, shown, DarkStyle());
}

double TextWidth(std::size_t bytes) { return 6.6 * static_cast<double>(bytes); }

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
                      std::string_view dashes, double width) {
  std::string list;
  for (const auto& [x, y] : points) list += fmt::format("{:.1f},{:.1f} ", x, y);
  out_ += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:g}\" "
      "stroke-linejoin=\"round\"{}/>\n",
      list, colour, width, dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes));
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
  out_ +=
      fmt::format("<path d=\"{}\" fill=\"{}\" shape-rendering=\"crispEdges\"/>\n", path, colour);
}

std::string Svg::Finish() && { return std::move(out_) + "</svg>\n"; }

}  // namespace troupe
