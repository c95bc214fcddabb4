// Whether a result can be written under a name, asked before the work rather than after it. Leaves
// nothing behind.
#pragma once

#include <string>

#include "base/status.h"

namespace troupe {

// "-" is standard output; a device or a pipe is written to as it is.
Status CheckOutput(const std::string& path);
// For what is not written from beginning to end: a file with a name.
Status CheckOutputFile(const std::string& path);
// For --plot: nothing, or a name that ends in .svg or .html.
Status CheckPlotName(const std::string& path);

}  // namespace troupe
