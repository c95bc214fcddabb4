// Scales a block's values and error weights to a common size, in which sums of fourth powers
// neither overflow nor vanish, and the way back for its scales. Values are divided by a power of
// two, so nothing is rounded until a scale becomes a half.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/half.h"
#include "quant/fit.h"

namespace troupe::internal {

template <std::size_t N>
class NormalizedBlock {
 public:
  // nullopt if all values are at least as near to 0 as to the least subnormal half: then the block
  // of zeros is the best. `importance` is empty or N weights.
  static std::optional<NormalizedBlock> From(std::span<const float> values,
                                             std::span<const float> importance) {
    float largest = 0;
    for (const float v : values) largest = std::max(largest, std::fabs(v));
    if (largest <= 0x1p-25f) return std::nullopt;
    return NormalizedBlock(values, importance, std::ilogb(largest));
  }

  // Values n * size .. n * size + size.
  WeightedValues Group(std::size_t n, std::size_t size) const {
    return {std::span(x_).subspan(n * size, size), std::span(w_).subspan(n * size, size)};
  }

  // The half for a scale or min of the normalized values: finite, and 0 only for 0, since a step of
  // 2^-24 is better than none.
  std::uint16_t ToHalf(float scale) const {
    constexpr float kLargestHalf = 65504;
    const float value = std::clamp(scale * unit_, -kLargestHalf, kLargestHalf);
    const std::uint16_t half = FloatToHalf(value);
    return value != 0 && (half & 0x7fff) == 0 ? half | 1 : half;
  }
  // The value of the scale after this rounding.
  float Rounded(float scale) const { return HalfToFloat(ToHalf(scale)) / unit_; }

 private:
  NormalizedBlock(std::span<const float> values, std::span<const float> importance, int exponent)
      : unit_(std::ldexp(1.0f, exponent)) {
    double squares = 0;
    for (std::size_t i = 0; i < N; ++i) {
      x_[i] = values[i] / unit_;
      squares += x_[i] * x_[i];
    }
    const auto mean_square = static_cast<float>(squares / N);
    for (std::size_t i = 0; i < N; ++i) w_[i] = std::sqrt(mean_square + x_[i] * x_[i]);
    double total = 0;
    for (const float v : importance) total += v;
    if (total == 0) return;
    for (std::size_t i = 0; i < N; ++i) {
      w_[i] *= static_cast<float>(importance[i] * (N / total)) + kLeastImportance;
    }
  }

  // As a share of the mean importance. A column that calibration never saw still needs a weight.
  static constexpr float kLeastImportance = 1e-3f;

  float unit_;
  std::array<float, N> x_;
  // Large values matter more, because they dominate a row's products; small ones still count.
  std::array<float, N> w_;
};

}  // namespace troupe::internal
