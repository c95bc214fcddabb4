// The vectors that weights are multiplied with: floats, and for block-quantized weights the same
// numbers as 8-bit codes with a scale for each 32 columns. Views only: the memory is the caller's.
// Quantizing them fast: kernels/quantize_activations.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/panel_layout.h"

namespace troupe {

// 32 columns of one token: x = scale * code. The sums of codes turn a product with unsigned weights
// into one with signed ones, and weigh the mins of the types that have them. All of it is in one
// record, so that a kernel needs one pointer for each token.
struct ActivationGroup {
  float scale;
  std::int32_t sum;               // of the 32 codes
  std::int32_t half_sum[2];       // of the first and the last 16
  std::int8_t codes[kGroupCols];  // -127..127
};

struct Activations {
  std::size_t tokens = 0;
  std::size_t cols = 0;
  const float* values = nullptr;  // token t begins at values + t * stride
  std::size_t stride = 0;
  ActivationGroup* groups = nullptr;  // [tokens][cols / 32]; null if there is no 8-bit form

  const float* Values(std::size_t token) const { return values + token * stride; }
  ActivationGroup* Groups(std::size_t token) const { return groups + token * (cols / kGroupCols); }
};

// Bytes of the 8-bit form; cols is a multiple of 32.
constexpr std::size_t ActivationBytes(std::size_t tokens, std::size_t cols) {
  return tokens * (cols / kGroupCols) * sizeof(ActivationGroup);
}

// A view of the values and of `storage` for their 8-bit form, yet to be filled: empty (then only
// F32, F16 and BF16 weights can be multiplied), or ActivationBytes() or more, aligned for floats.
Activations MakeActivations(const float* values, std::size_t stride, std::size_t tokens,
                            std::size_t cols, std::span<std::byte> storage);

// The scalar reference of kernels/quantize_activations.h: fills the 8-bit form of one token. For
// each 32 columns scale = max|x| / 127 and code = x * (127 / max|x|), each one rounding, the code
// then rounded to the nearest integer, ties to even. A group below kTinyActivation is zero; one
// that holds an infinity or a NaN gets the scale NaN, so that its products do not pass for numbers.
inline constexpr float kTinyActivation = 0x1p-100f;  // above it 127 / max does not overflow
void QuantizeActivationsReference(const Activations& x, std::size_t token);

}  // namespace troupe
