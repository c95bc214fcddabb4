// What a terminal understands, by what its environment says.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace troupe {

// Whether it is a terminal that knows escape sequences: TERM=dumb, as in an editor's window or a
// log, shows them as they are.
inline bool TakesEscapes(int descriptor) {
  const char* const term = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

}  // namespace troupe
