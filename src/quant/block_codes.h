// Packs codes and group scales into blocks and unpacks them: the one place that knows where their
// bits lie, but for types with a code book, which it only unpacks by book_codes.h. Codes are
// unsigned and in element order here, whatever the block does. block_formats.h says what the
// numbers mean.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/bit_plane.h"
#include "quant/block_formats.h"
#include "quant/book_codes.h"

namespace troupe {

template <typename Block>
using Codes = std::array<std::uint8_t, Block::kElems>;

// The integer scale and min of each group of a 256-element block; min is 0 where a type has none.
template <typename Block>
struct GroupScales {
  std::array<std::int8_t, Block::kGroups> scale{};
  std::array<std::uint8_t, Block::kGroups> min{};
};

// The block's scale, d (times the unit of its levels), as a float; 1 where its groups have all of
// it.
template <typename Block>
float ScaleOf([[maybe_unused]] const Block& b) {
  if constexpr (kHasFloatScales<Block>) {
    return 1;
  } else if constexpr (kHasBook<Block>) {
    return HalfToFloat(HalfOf(b)) * Block::kUnit;
  } else if constexpr (sizeof b.d == 1) {
    return HalvedExponentToFloat(b.d);
  } else {
    return HalfToFloat(b.d);
  }
}

// Calls f(plane, bytes) for the planes that make up the codes of a block. Q8_0 has none: its codes
// are whole bytes.
template <typename Block, typename F>
void ForEachPlane(Block& b, F&& f) {
  constexpr TensorType kType = Block::kType;
  if constexpr (kType == TensorType::kNVFP4) {
    f(BitPlane<4, 8>(), b.qs);
  } else if constexpr (kType == TensorType::kQ4_0 || kType == TensorType::kQ4_1 ||
                       kHasLevels<Block>) {
    f(BitPlane<4, 16>(), b.qs);
  } else if constexpr (kType == TensorType::kQ5_0 || kType == TensorType::kQ5_1) {
    f(BitPlane<4, 16>(), b.qs);
    f(BitPlane<1, 1, 4>(), b.qh);
  } else if constexpr (kType == TensorType::kQ2_K) {
    f(BitPlane<2, 32>(), b.qs);
  } else if constexpr (kType == TensorType::kQ3_K) {
    f(BitPlane<2, 32>(), b.qs);
    f(BitPlane<1, 32, 2>(), b.hmask);
  } else if constexpr (kType == TensorType::kQ4_K) {
    f(BitPlane<4, 32>(), b.qs);
  } else if constexpr (kType == TensorType::kQ5_K) {
    f(BitPlane<4, 32>(), b.qs);
    f(BitPlane<1, 32, 4>(), b.qh);
  } else {
    static_assert(kType == TensorType::kQ6_K);
    f(BitPlane<4, 64>(), b.ql);
    f(BitPlane<2, 32, 4>(), b.qh);
  }
}

template <typename Block>
Codes<Block> UnpackCodes(const Block& b) {
  Codes<Block> codes{};
  if constexpr (kHasBook<Block>) {
    codes = BookCodes(b);
  } else if constexpr (Block::kType == TensorType::kQ8_0) {
    for (std::size_t i = 0; i < Block::kElems; ++i) {
      codes[i] = static_cast<std::uint8_t>(b.qs[i] + Block::kOffset);
    }
  } else {
    ForEachPlane(b, [&](auto plane, const auto& bytes) { plane.Unpack(bytes, std::span(codes)); });
  }
  return codes;
}

template <typename Block>
void PackCodes(const Codes<Block>& codes, Block& b) {
  if constexpr (Block::kType == TensorType::kQ8_0) {
    for (std::size_t i = 0; i < Block::kElems; ++i) {
      b.qs[i] = static_cast<std::int8_t>(codes[i] - Block::kOffset);
    }
  } else {
    ForEachPlane(b, [&](auto plane, auto& bytes) { plane.Pack(std::span(codes), bytes); });
  }
}

template <typename Block>
GroupScales<Block> UnpackScales(const Block& b) {
  constexpr TensorType kType = Block::kType;
  GroupScales<Block> groups;
  const auto set_scale = [&](std::size_t g, int scale) {
    groups.scale[g] = static_cast<std::int8_t>(scale);
  };
  const auto set_min = [&](std::size_t g, int min) {
    groups.min[g] = static_cast<std::uint8_t>(min);
  };
  if constexpr (kHasBook<Block>) {
    for (std::size_t g = 0; g < Block::kGroups; ++g) set_scale(g, 2 * StoredScale(b, g) + 1);
  } else if constexpr (kType == TensorType::kQ2_K) {
    for (std::size_t g = 0; g < 16; ++g) {
      set_scale(g, b.scales[g] & 15);
      set_min(g, b.scales[g] >> 4);
    }
  } else if constexpr (kType == TensorType::kQ3_K) {  // 16 low nibbles, then 16 high bit pairs
    for (std::size_t g = 0; g < 16; ++g) {
      const int low = (b.scales[g % 8] >> (4 * (g / 8))) & 15;
      const int high = (b.scales[8 + g % 4] >> (2 * (g / 4))) & 3;
      set_scale(g, (low | high << 4) - 32);
    }
  } else if constexpr (kType == TensorType::kQ6_K) {
    for (std::size_t g = 0; g < 16; ++g) set_scale(g, b.scales[g]);
  } else if constexpr (kType == TensorType::kIQ4_XS) {  // 8 high bit pairs, then 8 low nibbles
    for (std::size_t g = 0; g < 8; ++g) {
      const int high = (b.scales[g / 4] >> (2 * (g % 4))) & 3;
      const int low = (b.scales[2 + g / 2] >> (4 * (g % 2))) & 15;
      set_scale(g, (low | high << 4) - 32);
    }
  } else {  // Q4_K, Q5_K: groups 0-3 whole; 4-7 in nibbles, their high bits above those of 0-3
    for (std::size_t g = 0; g < 4; ++g) {
      set_scale(g, b.scales[g] & 63);
      set_min(g, b.scales[g + 4] & 63);
      set_scale(g + 4, (b.scales[g + 8] & 15) | (b.scales[g] >> 6) << 4);
      set_min(g + 4, (b.scales[g + 8] >> 4) | (b.scales[g + 4] >> 6) << 4);
    }
  }
  return groups;
}

// Each group's scale as a float, rounded once: what its levels are multiplied with.
template <typename Block>
std::array<float, Block::kGroups> GroupScalesOf(const Block& b) {
  std::array<float, Block::kGroups> scales;
  if constexpr (kHasFloatScales<Block>) {
    for (std::size_t g = 0; g < Block::kGroups; ++g) scales[g] = HalvedE4M3ToFloat(b.scales[g]);
  } else {
    const GroupScales<Block> groups = UnpackScales(b);
    const float d = ScaleOf(b);
    for (std::size_t g = 0; g < Block::kGroups; ++g) {
      scales[g] = d * static_cast<float>(groups.scale[g]);
    }
  }
  return scales;
}

// Each group's min as a float, which is subtracted.
template <typename Block>
requires(Block::kHasMin) std::array<float, Block::kGroups> GroupMinsOf(const Block& b) {
  const GroupScales<Block> groups = UnpackScales(b);
  const float dmin = HalfToFloat(b.dmin);
  std::array<float, Block::kGroups> mins;
  for (std::size_t g = 0; g < Block::kGroups; ++g) {
    mins[g] = dmin * static_cast<float>(groups.min[g]);
  }
  return mins;
}

template <typename Block>
void PackScales(const GroupScales<Block>& groups, Block& b) {
  constexpr TensorType kType = Block::kType;
  const auto& scale = groups.scale;
  const auto& min = groups.min;
  const auto byte = [](int value) { return static_cast<std::uint8_t>(value); };
  if constexpr (kType == TensorType::kQ2_K) {
    for (std::size_t g = 0; g < 16; ++g) b.scales[g] = byte(scale[g] | min[g] << 4);
  } else if constexpr (kType == TensorType::kQ3_K) {
    for (std::size_t i = 0; i < 8; ++i) {
      b.scales[i] = byte(((scale[i] + 32) & 15) | ((scale[i + 8] + 32) & 15) << 4);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      int bits = 0;
      for (std::size_t run = 0; run < 4; ++run) {
        bits |= ((scale[4 * run + i] + 32) >> 4) << (2 * run);
      }
      b.scales[8 + i] = byte(bits);
    }
  } else if constexpr (kType == TensorType::kQ6_K) {
    for (std::size_t g = 0; g < 16; ++g) b.scales[g] = scale[g];
  } else if constexpr (kType == TensorType::kIQ4_XS) {
    for (std::uint8_t& packed : b.scales) packed = 0;
    for (std::size_t g = 0; g < 8; ++g) {
      const int stored = scale[g] + 32;
      b.scales[g / 4] |= byte((stored >> 4) << (2 * (g % 4)));
      b.scales[2 + g / 2] |= byte((stored & 15) << (4 * (g % 2)));
    }
  } else {
    for (std::size_t g = 0; g < 4; ++g) {
      b.scales[g] = byte(scale[g] | (scale[g + 4] >> 4) << 6);
      b.scales[g + 4] = byte(min[g] | (min[g + 4] >> 4) << 6);
      b.scales[g + 8] = byte((scale[g + 4] & 15) | (min[g + 4] & 15) << 4);
    }
  }
}

}  // namespace troupe
