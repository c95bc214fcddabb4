// Floats to every stored type: one row at a time, scalar, the same bytes on every machine. Q4_0 to
// Q8_0 round as ggml's reference does, bit for bit, when no importance is given; the K-quants
// search for the scales that minimise the weighted squared error. The way back: dequantize.h.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"
#include "base/tensor_type.h"

namespace troupe {

// The largest magnitude that every type can hold: beyond it a scale overflows its half.
inline constexpr float kMaxQuantizable = 65504.0f;
inline constexpr float kMaxImportance = 3e38f;

// Ok if all values are finite and at most kMaxQuantizable in magnitude, as QuantizeRow needs.
// `what` names the row in the message.
Status CheckQuantizable(std::span<const float> values, std::string_view what);

// dst is exactly RowBytes(type, src.size()) bytes. `importance`, empty or one weight >= 0 per
// element of the row, says how much an error in that column matters (for instance the mean square
// of the activation it meets); empty stands for a weighting by the values themselves, or none, as
// suits the type. Values that are not quantizable (see above) stop the program, except for F32,
// which stores anything, and F16 and BF16, which convert as half.h says.
void QuantizeRow(TensorType type, std::span<const float> src, std::span<std::byte> dst,
                 std::span<const float> importance = {});

}  // namespace troupe
