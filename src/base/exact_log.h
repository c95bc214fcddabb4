// The natural logarithm by basic IEEE operations in a fixed order: the same bits on every machine,
// as exact_exp.h has it for the exponential function.
#pragma once

#include <array>

namespace troupe {

// What it is made of: x = 2^n (1 + f) with 1 + f nearest 1, and log(1 + f) by a polynomial in
// f / (2 + f), as FDLIBM has it.
struct ExactLogNumbers {
  static constexpr double kRootOfTwo = 0x1.6a09e667f3bcdp+0;
  static constexpr double kLn2High = 0x1.62e42feep-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr std::array<double, 7> kCoefficients = {
      0x1.5555555555593p-1, 0x1.999999997fa04p-2, 0x1.2492494229359p-2, 0x1.c71c51d8e78afp-3,
      0x1.7466496cb03dep-3, 0x1.39a09d078c69fp-3, 0x1.2f112df3e5244p-3};
};

// Within 2e-16 relative of log x, or 2e-16 where that is less than 1. REQUIRES: x is a normal
// number above 0.
double ExactLog(double x);

}  // namespace troupe
