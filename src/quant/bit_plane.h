// How the stored types pack small fields into bytes: one rule with two parameters covers all of
// them. Which planes make up which type's codes is said in block_codes.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

// Fields of Bits bits. The bytes come in chunks of Stride; a chunk holds 8 / Bits runs of Stride
// consecutive elements, the first run in the lowest bits of every byte, the next run above it. So
// Stride 1 is plain little-endian bit order, and a Stride as wide as a vector register unpacks
// whole vectors with one shift and one mask. A field is the part of a code from bit Shift on.
template <int Bits, std::size_t Stride, int Shift = 0>
struct BitPlane {
  static constexpr std::size_t kRuns = 8 / Bits;
  static constexpr unsigned kMask = (1u << Bits) - 1;

  // ORs the fields into `codes`, whose other bits come from other planes.
  template <std::size_t N, std::size_t M>
  static void Unpack(const std::uint8_t (&bytes)[M], std::span<std::uint8_t, N> codes) {
    static_assert(N == M * kRuns && M % Stride == 0);
    for (std::size_t chunk = 0; chunk < M / Stride; ++chunk) {
      for (std::size_t run = 0; run < kRuns; ++run) {
        for (std::size_t i = 0; i < Stride; ++i) {
          const unsigned field = (bytes[chunk * Stride + i] >> (run * Bits)) & kMask;
          codes[(chunk * kRuns + run) * Stride + i] |= static_cast<std::uint8_t>(field << Shift);
        }
      }
    }
  }

  // Overwrites all of `bytes`.
  template <std::size_t N, std::size_t M>
  static void Pack(std::span<const std::uint8_t, N> codes, std::uint8_t (&bytes)[M]) {
    static_assert(N == M * kRuns && M % Stride == 0);
    for (std::size_t chunk = 0; chunk < M / Stride; ++chunk) {
      for (std::size_t i = 0; i < Stride; ++i) {
        unsigned byte = 0;
        for (std::size_t run = 0; run < kRuns; ++run) {
          const unsigned code = codes[(chunk * kRuns + run) * Stride + i];
          byte |= ((code >> Shift) & kMask) << (run * Bits);
        }
        bytes[chunk * Stride + i] = static_cast<std::uint8_t>(byte);
      }
    }
  }
};

}  // namespace troupe
