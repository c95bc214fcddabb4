// The two numbers that steer a head of a gated delta net or of a state space: how much of its state
// it keeps and how much of a value it learns, one of each a head and token. A few hundred numbers a
// layer.
//
// Bits: e^x, its logistic function and softplus as in quant/exp_reference.h; one rounding for each
// sum and product. Truth: delta_gates_test.cc.
#pragma once

#include <cstddef>

namespace troupe {

// alpha[i] = e^(a[i] * softplus(alpha[i] + dt[i])): the decay; beta[i] = sigmoid(beta[i]).
void DeltaGates(const float* dt, const float* a, float* alpha, float* beta, std::size_t n);

// step[i] = softplus(decay[i] + dt[i]), then decay[i] = e^(a[i] * step[i]).
void StateSpaceGates(const float* dt, const float* a, float* decay, float* step, std::size_t n);

}  // namespace troupe
