#include "quant/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "quant/block_formats.h"
#include "quant/dequantize.h"
#include "quant/normalize.h"
#include "quant/quantize_blocks.h"

namespace troupe {
namespace {

// False for NaN too. Without an early exit, so that it is done in vectors.
bool AllWithin(std::span<const float> values, float low, float high) {
  bool all = true;
  for (const float v : values) all &= v >= low && v <= high;
  return all;
}

template <std::uint16_t (*FromFloat)(float)>
void Narrow(std::span<const float> src, std::byte* dst) {
  for (std::size_t i = 0; i < src.size(); ++i) {
    const std::uint16_t bits = FromFloat(src[i]);
    std::memcpy(dst + i * sizeof bits, &bits, sizeof bits);
  }
}

void QuantizeChecked(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                     std::span<const float> importance, Rounding rounding) {
  bool has_levels = false, has_book = false;
  WithBlockType(type, [&]<typename Block>() {
    has_levels = kHasLevels<Block>;
    has_book = kHasBook<Block>;
  });
  if (has_book) {
    internal::QuantizeBooks(type, src, dst, importance, rounding);
  } else if (type == TensorType::kNVFP4) {
    internal::QuantizeNvfp4(src, dst, importance, rounding);
  } else if (has_levels) {
    internal::QuantizeLevels(type, src, dst, importance, rounding);
  } else if (Info(type).block_elems == 32) {
    internal::QuantizeBlocks(type, src, dst, importance, rounding);
  } else if (rounding == Rounding::kPlain) {
    internal::RoundSuperBlocks(type, src, dst);
  } else {
    internal::QuantizeSuperBlocks(type, src, dst, importance);
  }
}

double ErrorOf(TensorType type, std::span<const std::byte> block, WeightedValues values) {
  std::array<float, 256> stored;
  DequantizeRow(type, block, std::span(stored).first(values.x.size()));
  double sum = 0;
  for (std::size_t i = 0; i < values.x.size(); ++i) {
    const double miss = static_cast<double>(values.x[i]) - static_cast<double>(stored[i]);
    sum += static_cast<double>(values.w[i]) * miss * miss;
  }
  return sum;
}

// A search that looks at some scales out of all may pass by the plain one. Rarely, but what is
// promised is never.
void TakePlainWhereBetter(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                          std::span<const float> importance) {
  if (type == TensorType::kQ8_0) return;  // there was no search
  std::vector<std::byte> plain(dst.size());
  QuantizeChecked(type, src, plain, {}, Rounding::kPlain);
  WithBlockType(type, [&]<typename Block>() {
    for (std::size_t i = 0; i < src.size() / Block::kElems; ++i) {
      const auto values = src.subspan(i * Block::kElems, Block::kElems);
      const auto weights =
          importance.empty() ? importance : importance.subspan(i * Block::kElems, Block::kElems);
      const auto block = internal::NormalizedBlock<Block::kElems>::From(values, weights);
      if (!block) continue;  // zeros either way
      const WeightedValues weighted = {values, block->Group(0, Block::kElems).w};
      const auto found = dst.subspan(i * sizeof(Block), sizeof(Block));
      const auto rival = std::span(plain).subspan(i * sizeof(Block), sizeof(Block));
      if (ErrorOf(type, rival, weighted) < ErrorOf(type, found, weighted)) {
        std::ranges::copy(rival, found.begin());
      }
    }
  });
}

}  // namespace

Status CheckQuantizable(std::span<const float> values, std::string_view what) {
  if (AllWithin(values, -kMaxQuantizable, kMaxQuantizable)) return OkStatus();
  const auto bad = std::find_if(values.begin(), values.end(),
                                [](float v) { return !(std::fabs(v) <= kMaxQuantizable); });
  return InvalidArgument("{}: element {} is {}, magnitudes up to {} can be quantized", what,
                         bad - values.begin(), *bad, kMaxQuantizable);
}

void QuantizeRow(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                 std::span<const float> importance, Rounding rounding) {
  TROUPE_CHECK(dst.size() == RowBytes(type, src.size()).count());
  switch (type) {
    case TensorType::kF32:
      if (!src.empty()) std::memcpy(dst.data(), src.data(), dst.size());
      return;
    case TensorType::kF16:
      return Narrow<FloatToHalf>(src, dst.data());
    case TensorType::kBF16:
      return Narrow<FloatToBf16>(src, dst.data());
    default:
      break;
  }
  TROUPE_CHECK(AllWithin(src, -kMaxQuantizable, kMaxQuantizable));
  TROUPE_CHECK(importance.empty() || importance.size() == src.size());
  TROUPE_CHECK(AllWithin(importance, 0, std::numeric_limits<float>::max()));
  QuantizeChecked(type, src, dst, importance, rounding);
  if (rounding == Rounding::kBest) TakePlainWhereBetter(type, src, dst, importance);
}

}  // namespace troupe
