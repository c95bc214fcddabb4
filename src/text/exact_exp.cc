#include "text/exact_exp.h"

#include <array>
#include <bit>
#include <cstdint>

#include "base/check.h"

namespace troupe {
namespace {

// 1/k!, the coefficients of Taylor's series. The first term left out is below 5e-18.
constexpr auto kCoefficients = [] {
  std::array<double, 14> coefficients{1};
  double factorial = 1;
  for (std::size_t k = 1; k < coefficients.size(); ++k) {
    factorial *= static_cast<double>(k);  // exact up to 18!
    coefficients[k] = 1 / factorial;
  }
  return coefficients;
}();

double PowerOfTwo(int exponent) {  // of a normal number
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace

double ExactExp(double x) {
  TROUPE_DCHECK(!(x > 0));
  if (!(x >= -700)) return 0;  // e^-700 is 1e-304: no weight anyone could draw
  // x = n ln 2 + r, |r| <= ln 2 / 2. The high part of ln 2 ends in 20 bits of zero, so that n times
  // it is exact.
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 0x1.62e42fee00000p-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const int n = static_cast<int>(x * kLog2E - 0.5);  // to the nearest, as x is not above 0
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = kCoefficients.back();
  for (std::size_t k = kCoefficients.size() - 1; k-- > 0;) sum = sum * r + kCoefficients[k];
  return sum * PowerOfTwo(n);
}

}  // namespace troupe
