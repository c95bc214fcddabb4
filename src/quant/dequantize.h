// Converts one row of a tensor of any stored type to floats, with the same bits as ggml. (No
// freedom is left there: products of a half, a group scale and a code fit a float's 24 bits, so
// only taking the min away rounds.) This is the reference for the kernels, not the fast path. What
// the blocks look like: block_formats.h.
#pragma once

#include <cstddef>
#include <span>

#include "base/tensor_type.h"

namespace troupe {

// src is exactly RowBytes(type, dst.size()) bytes, of any alignment; any bytes are valid (a scale
// may be infinite or NaN in a broken file, and then so are the values).
void DequantizeRow(TensorType type, std::span<const std::byte> src, std::span<float> dst);

}  // namespace troupe
