// Reads the body of a request: what is wrong with it is the client's fault, and named by its place.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/json_value.h"
#include "base/mutex.h"
#include "base/status.h"

namespace troupe {

// Of a body, at most: each takes memory many times its length of two bytes. A conversation has some
// hundreds; a prompt of tokens has them all.
inline constexpr std::size_t kMostBodyValues = 1 << 17;

// As many values as a text of JSON may have at most, without making them.
std::size_t CountJsonValues(std::string_view text);

// Held while a body of that length is read: its values take many times its length, and the memory
// plan has room for those of a small one (kSmallBodyBytes) and of a larger one.
Mutex& BodyReading(std::size_t bytes);

// What `read` makes of the body; kInvalidArgument: it is no JSON, or not what was expected.
template <typename T, typename Read>
Result<T> ReadBody(std::string_view body, Read read) {
  if (const std::size_t values = CountJsonValues(body); values > kMostBodyValues) {
    return InvalidArgument("request: {} values, expected at most {}", values, kMostBodyValues);
  }
  Result<T> found = [&] {
    const MutexLock lock(BodyReading(body.size()));
    return ReadJson<T>("request", body, std::move(read));
  }();
  if (found.ok() || found.status().code() == Code::kInvalidArgument) return found;
  return Status(Code::kInvalidArgument, found.status().message());
}

}  // namespace troupe
