// Reads the body of a request: what is wrong with it is the client's fault, and named by its place.
#pragma once

#include <string_view>
#include <utility>

#include "base/json_value.h"
#include "base/status.h"

namespace troupe {

// What `read` makes of the body; kInvalidArgument: it is no JSON, or not what was expected.
template <typename T, typename Read>
Result<T> ReadBody(std::string_view body, Read read) {
  Result<T> found = ReadJson<T>("request", body, std::move(read));
  if (found.ok() || found.status().code() == Code::kInvalidArgument) return found;
  return Status(Code::kInvalidArgument, found.status().message());
}

}  // namespace troupe
