// Text files that are read or written whole: the small ones in formats of our own.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

// Refuses, unread, a file of more than `most`: none of that format is.
Result<std::string> ReadWholeText(const std::string& path, Bytes most);

// Under its name complete or not at all (atomic_file.h).
Status WriteWholeText(const std::string& path, std::string_view text);

}  // namespace troupe
