// Reads memory as fast as a core can and adds it up, so that the reads cannot be left out: what
// decode is compared with, being bound by how fast weights can be read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

// Sum modulo 2^64 of the buffer's 64-bit words; bytes is a multiple of 8.
std::uint64_t ReadSum(const std::byte* data, std::size_t bytes);

}  // namespace troupe
