// Floats to every stored type: one row at a time, the same bytes on every machine. Threads share
// nothing. The way back: dequantize.h.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"
#include "base/tensor_type.h"

namespace troupe {

// The largest magnitude that every type can hold: beyond it a scale could overflow its half.
inline constexpr float kMaxQuantizable = 65504.0f;

// Ok if all values are finite and within kMaxQuantizable, as QuantizeRow needs for the block types.
// `what` names the row in the message.
Status CheckQuantizable(std::span<const float> values, std::string_view what);

// The rule by which scales (and mins) are chosen.
enum class Rounding {
  // As ggml's reference does. For blocks of 32 but IQ4_NL, and for NVFP4: byte for byte, from
  // their extremes unless there is an importance. All others: by a search, for IQ1 to IQ3 a shorter
  // one than best.
  kReference,
  // Every group's scale from its extremes, every value to the nearest step: the baseline that a
  // search must beat.
  kPlain,
  // By a search for the least squared error, weighted by the values' sizes and the importance. No
  // block has a larger such error than with kPlain.
  kBest,
};

// dst is exactly RowBytes(type, src.size()) bytes. `importance` is empty or has one finite weight
// >= 0 per column: how much a squared error there counts (for instance the mean square of the
// activations it meets). The searches weigh by it and by the values themselves; Q8_0 has nothing to
// gain and ignores it, as plain rounding does. A value that is not quantizable stops the program;
// F32, F16 and BF16 take any value and round as base/half.h does.
void QuantizeRow(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                 std::span<const float> importance = {}, Rounding rounding = Rounding::kReference);

}  // namespace troupe
