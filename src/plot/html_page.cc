#include "plot/html_page.h"

#include <string_view>

#include "plot/svg.h"

namespace troupe {
namespace {

// A picture of more bytes, as of a thousand experts' pairs, is of parts that are too many for a
// phone: the desk's, made smaller, is the only one.
constexpr std::size_t kMostDrawnTwice = std::size_t{1} << 20;

// Pictures fill the page, as many beside each other as can be read; the last ones share their row.
// A card has the pictures' own ground. On a phone's width each is the one that was drawn for it.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #222; --page: #f6f6f4; --edge: #ddd; --card: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e2; --page: #0f1012; --edge: #34363a; --card: #17181a; } }
body { font: 16px/1.5 system-ui, Helvetica, Arial, sans-serif; color: var(--ink);
       background: var(--page); margin: 0 auto; max-width: 1900px; padding: clamp(.8rem, 2vw, 2rem); }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .2rem; }
p { max-width: 75ch; margin: .3rem 0 1rem; }
.row { display: flex; flex-wrap: wrap; gap: 1rem; }
.row > div { flex: 1 1 min(100%, 560px); min-width: 0; overflow: hidden; box-sizing: border-box;
             background: var(--card); border: 1px solid var(--edge); border-radius: 6px; }
.row svg { display: block; width: 100%; max-width: 900px; height: auto; margin: auto; }
.phone { display: none; }
@media (max-width: 559px) { .desk { display: none; } .phone { display: block; } }
)";

std::string Paragraphs(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    html += fmt::format("<p>{}</p>\n", EscapeXml(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return html;
}

}  // namespace

std::string ToHtml(const HtmlPage& page) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}",
      EscapeXml(page.title), kStyle, Paragraphs(page.text));
  for (const PageSection& section : page.sections) {
    html += fmt::format("<h2>{}</h2>\n{}<div class=\"row\">\n", EscapeXml(section.heading),
                        Paragraphs(section.text));
    for (const auto& picture : section.pictures) {
      html += std::visit(
          [](const auto& drawn) {
            const std::string desk = ToSvg(drawn, Screen::kDesk);
            if (desk.size() > kMostDrawnTwice) return fmt::format("<div>{}</div>\n", desk);
            return fmt::format(
                "<div><div class=\"desk\">{}</div><div class=\"phone\">{}</div></div>\n", desk,
                ToSvg(drawn, Screen::kPhone));
          },
          picture);
    }
    html += "</div>\n";
  }
  return html + "</body>\n</html>\n";
}

}  // namespace troupe
