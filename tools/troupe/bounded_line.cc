#include "troupe/bounded_line.h"

#include <utility>

namespace troupe {

std::optional<BoundedLine> TakeLine(std::istream& in, std::size_t most) {
  BoundedLine line;
  bool any = false;
  for (char c = 0; in.get(c); any = true) {
    if (c == '\n') return line;
    if (line.text.size() < most) {
      line.text.push_back(c);
    } else {
      line.too_long = true;
    }
  }
  return any ? std::optional(std::move(line)) : std::nullopt;
}

}  // namespace troupe
