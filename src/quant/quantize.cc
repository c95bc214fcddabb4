#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"
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

}  // namespace

Status CheckQuantizable(std::span<const float> values, std::string_view what) {
  if (AllWithin(values, -kMaxQuantizable, kMaxQuantizable)) return OkStatus();
  const auto bad = std::find_if(values.begin(), values.end(),
                                [](float v) { return !(std::fabs(v) <= kMaxQuantizable); });
  return InvalidArgument("{}: element {} is {}, magnitudes up to {} can be quantized", what,
                         bad - values.begin(), *bad, kMaxQuantizable);
}

void QuantizeRow(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                 std::span<const float> importance) {
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
  if (Info(type).block_elems == 32) {
    internal::QuantizeBlocks(type, src, dst, importance);
  } else {
    internal::QuantizeSuperBlocks(type, src, dst, importance);
  }
}

}  // namespace troupe
