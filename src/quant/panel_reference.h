// The product of one stored row with one token as a fixed sequence of float operations: the scalar
// truth of the matrix kernels, which equal it bit for bit on every target, for any number of tokens
// and threads. With fl(.) one rounding to float, fma one rounding of a * b + c, and acc = 0 first:
//
//   F32 F16 BF16   for each column k:       acc = fma(w[k], x[k], acc)
//   block types    for each 32 columns, whose activations are dx * code:
//                    t = 0
//                    for each run of columns that shares a scale (1 of 32, or 2 of 16):
//                      i = sum of (q - offset) * code       exact: an integer below 2^24
//                      t = fma(float(i), s, t)
//                    for the same runs, in types with a min:
//                      t = fma(float(sum of codes), m, t)
//                    acc = fma(t, dx, acc)
//
// s is fl(d * scale) (d itself for blocks of 32) and m is fl(-dmin * min) (m itself for Q4_1,
// Q5_1).
#pragma once

#include <cstddef>
#include <span>

#include "base/tensor_type.h"
#include "quant/activations.h"

namespace troupe {

// `row` is a row as the file stores it (not packed), RowBytes(type, x.cols) long.
float PanelDotReference(TensorType type, std::span<const std::byte> row, const Activations& x,
                        std::size_t token);

}  // namespace troupe
