#include "text/exact_exp.h"

#include <cmath>

#include "base/check.h"

namespace troupe {

double ExactExp(double x) {
  TROUPE_DCHECK(!(x > 0));
  if (!(x >= -700)) return 0;  // e^-700 is 1e-304: no weight anyone could draw
  // x = n ln 2 + r, |r| <= ln 2 / 2. The high part of ln 2 has 20 low bits of zero, so that n times
  // it is exact.
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 0x1.62e42fee00000p-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const double n = std::nearbyint(x * kLog2E);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  // Taylor: the first term left out, r^14 / 14!, is below 5e-18.
  double sum = 1;
  for (int k = 13; k >= 1; --k) sum = 1 + sum * r / k;
  return std::ldexp(sum, static_cast<int>(n));
}

}  // namespace troupe
