// Bytes (troupe/bytes.h, where they are defined for the whole engine and those who embed it),
// and arithmetic with them.
#pragma once

#include <troupe/bytes.h>

#include <cstdint>

#include "base/status.h"

namespace troupe {

// Smallest multiple of `alignment` (a power of two) that holds n.
constexpr std::uint64_t AlignUp(std::uint64_t n, std::uint64_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

// For quotients: beyond 2^53 it is rounded.
constexpr double AsDouble(Bytes bytes) { return static_cast<double>(bytes.count()); }

}  // namespace troupe
