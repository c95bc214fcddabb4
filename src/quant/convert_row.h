// Converts one row of weights from one stored type to another, through floats.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"
#include "base/tensor_type.h"
#include "quant/quantize.h"

namespace troupe {

// `floats` is as long as the row and is overwritten; `in` and `out` are exactly its bytes. Fails if
// a value cannot be stored in `to`; `what` names the row in the message.
Status ConvertRow(TensorType from, std::span<const std::byte> in, TensorType to, Rounding rounding,
                  std::span<std::byte> out, std::span<float> floats, std::string_view what);

}  // namespace troupe
