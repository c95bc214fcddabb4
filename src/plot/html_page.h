// One HTML page with pictures and a few words about each, for a desk and a phone, light or dark. It
// loads nothing from a network.
#pragma once

#include <string>
#include <vector>

namespace troupe {

struct PageSection {
  std::string heading;
  std::string text;               // plain; blank lines part paragraphs
  std::vector<std::string> svgs;  // side by side where there is room
};

struct HtmlPage {
  std::string title;
  std::string text;
  std::vector<PageSection> sections;
};

std::string ToHtml(const HtmlPage& page);

}  // namespace troupe
