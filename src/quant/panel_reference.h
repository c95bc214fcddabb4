// The product of one stored row with one token as a fixed sequence of float operations: the scalar
// reference of the matrix kernels, which equal it bit for bit on every target, for any number of
// tokens and threads. With fl(.) one rounding to float, fma one rounding of a * b + c, and acc = 0
// first:
//
//   F32 F16 BF16   for each column k:       acc = fma(w[k], x[k], acc)
//   block types    for each 32 columns, whose activations are dx * code, in runs of columns that
//                  share a weight scale (one run of 32, or two of 16):
//                    i[run] = sum of (q - offset) * code        exact: an integer below 2^24
//                             (or of kLevels[q] * code)
//                    t = fl(float(i[0]) * s[0])
//                    t = fma(float(i[1]), s[1], t)              if there are two runs
//                    t = fma(float(sum of codes), m[run], t)    for each run, in types with a min
//                    acc = fma(t, dx, acc)
//
// s is fl(d * scale) (d itself for blocks of 32; half of it in MXFP4, of a scale in NVFP4) and m is
// fl(-dmin * min) (m itself for Q4_1, Q5_1).
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
