// Writes a command's figures as JSON, for --json.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/status.h"

namespace troupe {

inline Json NumberOrNull(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

// Members stay in the order in which they were put in.
// To stdout if the path is "-"; in place if it names a pipe or a device; else to a file that
// appears complete or not at all. Bytes that are not UTF-8 become U+FFFD.
Status WriteJson(const Json& record, const std::string& path);

}  // namespace troupe
