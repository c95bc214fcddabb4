// Reads memory as fast as a core can, and adds it up so that the compiler cannot remove the reads.
// Decode is bound by the speed of reading weights, and is compared with this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

// Sum modulo 2^64 of the buffer's 64-bit words; bytes is a multiple of 8.
std::uint64_t ReadSum(const std::byte* data, std::size_t bytes);

}  // namespace troupe
