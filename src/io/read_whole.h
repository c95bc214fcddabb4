// Reads published recordings of any kind whole: plain, or compressed with zstd.
#pragma once

#include <string>

#include "base/status.h"

namespace troupe {

// Decompressed if its name ends in ".zst". At most a gigabyte.
Result<std::string> ReadWhole(const std::string& path);

}  // namespace troupe
