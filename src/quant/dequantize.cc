#include "quant/dequantize.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "quant/block_codes.h"
#include "quant/block_formats.h"

namespace troupe {
namespace {

// An integer below 2^8, so exact as a float.
template <typename Block>
float Level(std::uint8_t code) {
  return static_cast<float>(LevelOf<Block>(code));
}

template <typename Block>
void DequantizeBlock(const Block& b, float* out) {
  const Codes<Block> codes = UnpackCodes(b);
  const float d = ScaleOf(b);
  if constexpr (Block::kHasMin) {
    const float m = HalfToFloat(b.m);
    for (std::size_t i = 0; i < Block::kElems; ++i) out[i] = Level<Block>(codes[i]) * d + m;
  } else {
    for (std::size_t i = 0; i < Block::kElems; ++i) out[i] = Level<Block>(codes[i]) * d;
  }
}

template <typename Block>
requires(Block::kGroups > 0) void DequantizeBlock(const Block& b, float* out) {
  const Codes<Block> codes = UnpackCodes(b);
  const std::array<float, Block::kGroups> scales = GroupScalesOf(b);
  std::array<float, Block::kGroups> mins{};
  if constexpr (Block::kHasMin) mins = GroupMinsOf(b);
  for (std::size_t g = 0; g < Block::kGroups; ++g) {
    const std::uint8_t* code = codes.data() + g * Block::kGroupElems;
    float* y = out + g * Block::kGroupElems;
    const float scale = scales[g];
    if constexpr (Block::kHasMin) {
      for (std::size_t i = 0; i < Block::kGroupElems; ++i)
        y[i] = scale * Level<Block>(code[i]) - mins[g];
    } else {
      for (std::size_t i = 0; i < Block::kGroupElems; ++i) y[i] = scale * Level<Block>(code[i]);
    }
  }
}

template <float (*ToFloat)(std::uint16_t)>
void Widen(const std::byte* src, std::span<float> dst) {
  for (std::size_t i = 0; i < dst.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, src + i * sizeof bits, sizeof bits);
    dst[i] = ToFloat(bits);
  }
}

}  // namespace

void DequantizeRow(TensorType type, std::span<const std::byte> src, std::span<float> dst) {
  TROUPE_CHECK(src.size() == RowBytes(type, dst.size()).count());
  const bool is_blocks = WithBlockType(type, [&]<typename Block>() {
    for (std::size_t i = 0; i < dst.size() / Block::kElems; ++i) {
      Block b;
      std::memcpy(&b, src.data() + i * sizeof b, sizeof b);
      DequantizeBlock(b, dst.data() + i * Block::kElems);
    }
  });
  if (is_blocks) return;
  if (type == TensorType::kF16) {
    Widen<HalfToFloat>(src.data(), dst);
  } else if (type == TensorType::kBF16) {
    Widen<Bf16ToFloat>(src.data(), dst);
  } else {
    TROUPE_CHECK(type == TensorType::kF32);
    if (!dst.empty()) std::memcpy(dst.data(), src.data(), src.size());
  }
}

}  // namespace troupe
