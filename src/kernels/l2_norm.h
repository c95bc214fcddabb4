// Scales a row to a length: out[i] = x[i] * scale / sqrt(sum of x^2 + epsilon). Queries and keys of
// a delta net, per head and token.
//
// Bits: the squares are summed as in rms_norm.h; one square root, one division, and per element one
// product. Truth: l2_norm_test.cc.
#pragma once

#include <cstddef>

namespace troupe {

// `out` may be x.
void L2Norm(const float* x, float epsilon, float scale, float* out, std::size_t n);

}  // namespace troupe
