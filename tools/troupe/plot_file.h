// The line that says which file --plot has left: on stderr, as figures go to standard output.
#pragma once

#include <string>

#include "troupe/remark.h"

namespace troupe {

// To be told once the figures are printed, if --plot was given.
inline void TellPlot(const std::string& path) {
  if (!path.empty()) Remark("plot: {}\n", path);
}

}  // namespace troupe
