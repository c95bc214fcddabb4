#include "quant/quantize_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/block_codes.h"
#include "quant/fit.h"
#include "quant/normalize.h"

namespace troupe::internal {
namespace {

using Values = std::span<const float, 32>;

// 0 where 1 / d is not finite: then d is also 0 as a half, and the codes have no meaning.
float Inverse(float d) {
  const float inverse = 1 / d;
  return std::isfinite(inverse) ? inverse : 0;
}

std::uint8_t Truncate(float v, int max_code) {
  return static_cast<std::uint8_t>(std::min(static_cast<int>(v), max_code));
}

// The value with the largest magnitude gets code 0, whatever its sign: that side has one level
// more.
template <typename Block>
Block RoundSymmetric(Values x) {
  float extreme = 0;
  for (const float v : x) {
    if (std::fabs(v) > std::fabs(extreme)) extreme = v;
  }
  const float d = extreme / -static_cast<float>(Block::kOffset);
  const float inverse = Inverse(d);
  Codes<Block> codes;
  for (std::size_t i = 0; i < Block::kElems; ++i) {
    codes[i] = Truncate(x[i] * inverse + (Block::kOffset + 0.5f), Block::kMaxCode);
  }
  Block b;
  b.d = FloatToHalf(d);
  PackCodes(codes, b);
  return b;
}

// Q8_0 alone has symmetric codes, -127 to 127, and rounds ties away from 0.
template <>
BlockQ8_0 RoundSymmetric<BlockQ8_0>(Values x) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::fabs(v));
  const float d = largest / 127;
  const float inverse = Inverse(d);
  BlockQ8_0 b;
  b.d = FloatToHalf(d);
  for (std::size_t i = 0; i < x.size(); ++i) {
    b.qs[i] = static_cast<std::int8_t>(std::round(x[i] * inverse));
  }
  return b;
}

// The types with a min: codes span the range from the smallest to the largest value.
template <typename Block>
Block RoundFromMin(Values x) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const float d = (*high - *low) / static_cast<float>(Block::kMaxCode);
  const float inverse = Inverse(d);
  Codes<Block> codes;
  for (std::size_t i = 0; i < Block::kElems; ++i) {
    codes[i] = Truncate((x[i] - *low) * inverse + 0.5f, Block::kMaxCode);
  }
  Block b;
  b.d = FloatToHalf(d);
  b.m = FloatToHalf(*low);
  PackCodes(codes, b);
  return b;
}

// The scale (and offset) with the least weighted error.
template <typename Block>
Block Search(Values values, std::span<const float> importance) {
  const auto block = NormalizedBlock<Block::kElems>::From(values, importance);
  Block b{};
  if (!block) return b;
  constexpr CodeRange kCodes = {-Block::kOffset, Block::kMaxCode - Block::kOffset};
  const WeightedValues all = block->Group(0, Block::kElems);
  Line line;
  if constexpr (Block::kHasMin) {
    line = FitScaleAndMin(Block::kMaxCode, MinSign::kAny, all);
    b.m = block->ToHalf(line.min);
    line.min = block->Rounded(line.min);
  } else {
    line =
        kCodes.highest - kCodes.lowest < 16 ? FitScaleExactly(kCodes, all) : FitScale(kCodes, all);
  }
  b.d = block->ToHalf(line.scale);
  line.scale = block->Rounded(line.scale);
  Codes<Block> codes;
  CodesAt(line, kCodes, all.x, codes);
  PackCodes(codes, b);
  return b;
}

template <typename Block>
Block QuantizeBlock(Values values, std::span<const float> importance, Rounding rounding) {
  const bool search =
      rounding == Rounding::kBest || (rounding == Rounding::kReference && !importance.empty());
  // With 8 bits a search would gain next to nothing.
  if (search && Block::kType != TensorType::kQ8_0) return Search<Block>(values, importance);
  if constexpr (Block::kHasMin) {
    return RoundFromMin<Block>(values);
  } else {
    return RoundSymmetric<Block>(values);
  }
}

}  // namespace

void QuantizeBlocks(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                    std::span<const float> importance, Rounding rounding) {
  WithBlockType(type, [&]<typename Block>() {
    if constexpr (Block::kElems == 32 && !kHasLevels<Block>) {
      ForEachBlock<Block>(src, dst, importance, [rounding](auto values, auto weights) {
        return QuantizeBlock<Block>(values.template first<32>(), weights, rounding);
      });
    }
  });
}

}  // namespace troupe::internal
