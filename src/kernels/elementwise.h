// The small element-by-element operations between the large kernels, and argmax. Each element's
// result is the expression in the operation's comment, so every target gives the same bits.
// All are bound by memory. Adding one scaled row to another is axpy.h.
#pragma once

#include <cstddef>
#include <span>

namespace troupe {

// out[i] += x[i]: residuals, biases.
void Add(const float* x, float* out, std::size_t n);

// out[i] *= x[i].
void Multiply(const float* x, float* out, std::size_t n);

// out[i] *= factor: embedding and residual scales.
void Scale(float factor, float* out, std::size_t n);

// out[i] = fma(w[s], rows[s][i], ...) from slot 0 on, begun with out[i]: adds the answers of a
// token's experts in the order of their slots, whatever the order they were computed in. The same
// bits as one Axpy a slot; out is read and written once.
void MixExperts(std::span<const float> w, std::span<const float* const> rows, float* out,
                std::size_t n);

// out[i] = fma(g, y[i], out[i]) with g = sigmoid(gate): the shared expert of qwen2moe.
void AddGated(float gate, const float* y, float* out, std::size_t n);

// Index of the largest element, the lowest of equals; NaN is never the largest. n > 0; 0 if all
// are NaN.
std::size_t ArgMax(const float* x, std::size_t n);

}  // namespace troupe
