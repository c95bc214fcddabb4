// How requests share the engine: the rows of its passes and the pages of its KV cache.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace troupe {

// The pages of the KV cache now: each is free, held by requests, or kept by the prefix cache alone.
struct KvPages {
  std::size_t all = 0;
  std::size_t free = 0;
  std::size_t held = 0;
  std::size_t cached = 0;
  std::size_t tokens_each = 0;  // that a page has room for
};

// How many rows passes had.
struct PassRowCounts {
  static constexpr std::size_t kBounds = 13;
  // Passes of at most 1, 2, 4, … 4096 rows, and of more than the entry before; and of more.
  std::array<std::uint64_t, kBounds + 1> passes = {};
  std::uint64_t rows = 0;  // of all passes

  void Add(std::uint64_t rows_of_pass) {
    const auto bound = static_cast<std::size_t>(std::bit_width(rows_of_pass - 1));
    ++passes[bound < kBounds ? bound : kBounds];
    rows += rows_of_pass;
  }
  bool operator==(const PassRowCounts&) const = default;
};

}  // namespace troupe
