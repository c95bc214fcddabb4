// Gates on a row, element by element: attention's output gate, and the SiLU gate behind a delta
// net's norm; and what bends logits. e^x is quant/exp_reference.h's. Bound by memory.
#pragma once

#include <cstddef>

namespace troupe {

// out[i] = out[i] * sigmoid(gate[i]).
void MultiplySigmoid(const float* gate, float* out, std::size_t n);

// out[i] = out[i] * (gate[i] * sigmoid(gate[i])).
void MultiplySilu(const float* gate, float* out, std::size_t n);

// out[i] = (s + s - 1) * cap with s = sigmoid(out[i] * (2 / cap)): cap * tanh(out[i] / cap).
void SoftCap(float cap, float* out, std::size_t n);

}  // namespace troupe
