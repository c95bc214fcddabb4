// The exponential function by basic IEEE operations in a fixed order: the same bits on every
// machine, which the exp of a C library does not promise (it differs between versions and between
// processors with and without fused multiply-add). Sampling under a seed depends on it, and so do
// decisions that a device makes as the processor does (gpu/buddies.h).
#pragma once

#include <array>
#include <cstddef>

namespace troupe {

// What it is made of: x = n ln 2 + r, and e^r by its series.
struct ExactExpNumbers {
  static constexpr double kLeast = -700;  // e^-700 is 1e-304: no weight anyone could draw
  static constexpr double kLog2E = 1.4426950408889634;
  // The high part of ln 2 ends in 20 bits of zero, so that n times it is exact.
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  // 1/k!, the coefficients of Taylor's series. The first term left out is below 5e-18.
  static constexpr auto kCoefficients = [] {
    std::array<double, 14> coefficients{1};
    double factorial = 1;
    for (std::size_t k = 1; k < coefficients.size(); ++k) {
      factorial *= static_cast<double>(k);  // exact up to 18!
      coefficients[k] = 1 / factorial;
    }
    return coefficients;
  }();
};

// Within 5e-16 relative of e^x for x in [-700, 0]; 0 below. Not defined for x above 0.
double ExactExp(double x);

}  // namespace troupe
