// Reads and writes whole text files: the small ones in Troupe's own formats.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

// Refuses a file of more than `most` without reading it: no valid one is that large.
Result<std::string> ReadWholeText(const std::string& path, Bytes most);

// The file appears complete or not at all (atomic_file.h).
Status WriteWholeText(const std::string& path, std::string_view text);

}  // namespace troupe
