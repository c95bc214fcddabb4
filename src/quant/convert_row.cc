#include "quant/convert_row.h"

#include "quant/dequantize.h"
#include "quant/quantize.h"

namespace troupe {

Status ConvertRow(TensorType from, std::span<const std::byte> in, TensorType to, Rounding rounding,
                  std::span<std::byte> out, std::span<float> floats, std::string_view what) {
  DequantizeRow(from, in, floats);
  if (to != TensorType::kF32) TROUPE_RETURN_IF_ERROR(CheckQuantizable(floats, what));
  QuantizeRow(to, floats, out, {}, rounding);
  return OkStatus();
}

}  // namespace troupe
