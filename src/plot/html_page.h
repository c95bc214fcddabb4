// Pictures and a few words about each on one HTML page, which needs nothing from any network.
#pragma once

#include <string>
#include <vector>

namespace troupe {

struct PageSection {
  std::string heading;
  std::string text;               // plain; blank lines part paragraphs
  std::vector<std::string> svgs;  // beside each other where there is room
};

struct HtmlPage {
  std::string title;
  std::string text;
  std::vector<PageSection> sections;
};

std::string ToHtml(const HtmlPage& page);

}  // namespace troupe
