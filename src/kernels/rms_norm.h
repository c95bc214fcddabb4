// Root-mean-square normalisation of one row: out[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i].
// Per token and layer, and per head where queries and keys are normalised (call it on slices).
// Bound by memory.
//
// Bits: the squares are summed by fma over 16 lanes (lane i % 16 takes element i, in order) and the
// lanes added as SumLanes in lanes-inl.h says; then one division, one square root, one division,
// and per element (x * scale) * weight. Truth: RmsNormReference in rms_norm_test.cc.
#pragma once

#include <cstddef>

namespace troupe {

// `weight` may be null: then there is none. `out` may be x.
void RmsNorm(const float* x, const float* weight, float epsilon, float* out, std::size_t n);

}  // namespace troupe
