// Lines from somebody who may send any number of bytes without ending one.
#pragma once

#include <cstddef>
#include <istream>
#include <optional>
#include <string>

namespace troupe {

struct BoundedLine {
  std::string text;       // without its end; the beginning of it if it is too long
  bool too_long = false;  // more than the bound: all of it was taken, and not kept
};

// The next line, of which no more than `most` bytes are ever in memory; none at the end.
std::optional<BoundedLine> TakeLine(std::istream& in, std::size_t most);

}  // namespace troupe
