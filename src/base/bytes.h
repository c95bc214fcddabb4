// Bytes (troupe/bytes.h, where they are defined for the whole engine and those who embed it), and
// their alignment.
#pragma once

#include <troupe/bytes.h>

#include <cstdint>

#include "base/status.h"

namespace troupe {

// Smallest multiple of `alignment` (a power of two) that holds n.
constexpr std::uint64_t AlignUp(std::uint64_t n, std::uint64_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

}  // namespace troupe
