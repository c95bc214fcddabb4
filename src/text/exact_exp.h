// The exponential function by basic IEEE operations in a fixed order: the same bits on every
// machine, which the exp of a C library does not promise (it differs between versions and between
// processors with and without fused multiply-add). Sampling under a seed depends on it.
#pragma once

namespace troupe {

// Within 5e-16 relative of e^x for x in [-700, 0]; 0 below. Not defined for x above 0.
double ExactExp(double x);

}  // namespace troupe
