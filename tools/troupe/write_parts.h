// What `troupe split` and `troupe merge` have in common: the work, its bar and its report.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

// `part_bytes`: as Repart (forge/repart.h) has it. `json`: where the record goes; empty: nowhere.
Status WriteParts(const std::string& in, const std::string& out, Bytes part_bytes,
                  const std::string& json);

}  // namespace troupe
