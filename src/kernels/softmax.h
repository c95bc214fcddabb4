// Softmax of one row, in place: x[i] becomes e^(scale x[i] - m) / sum of the same, where m is the
// largest scale * x[i]. For router logits and for the sampler; attention has its own, streaming.
//
// Bits: e^x as in quant/exp_reference.h of fma(scale, x[i], -m); sum over 16 lanes as in
// rms_norm.h; each element times the reciprocal of the sum. scale must be positive. If a logit is
// NaN, all results are.
#pragma once

#include <cstddef>

namespace troupe {

void SoftmaxRow(float* x, std::size_t n, float scale = 1.0f);

// x[i] = 1 / (1 + e^-x[i]): the other gate that routers use.
void SigmoidRow(float* x, std::size_t n);

}  // namespace troupe
