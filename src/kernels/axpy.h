// out += a * x over n floats, one fused multiply-add an element: adds an expert's answer to its
// token with the router's weight. Bound by memory.
#pragma once

#include <cstddef>

namespace troupe {

void Axpy(float a, const float* x, float* out, std::size_t n);

}  // namespace troupe
