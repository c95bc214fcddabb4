// The product with a stored row in double precision. Kernels are compared with it, within bounds
// that follow from their float arithmetic.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/tensor_type.h"
#include "quant/dequantize.h"

namespace troupe {

struct ReferenceDot {
  double value = 0;      // sum of w[i] * x[i]
  double magnitude = 0;  // sum of |w[i] * x[i]|: rounding errors are proportional to this
};

inline ReferenceDot DotRow(TensorType type, std::span<const std::byte> row,
                           std::span<const float> x) {
  std::vector<float> w(x.size());
  DequantizeRow(type, row, w);
  ReferenceDot dot;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double product = static_cast<double>(w[i]) * static_cast<double>(x[i]);
    dot.value += product;
    dot.magnitude += product < 0 ? -product : product;
  }
  return dot;
}

}  // namespace troupe
