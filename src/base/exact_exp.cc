#include "base/exact_exp.h"

#include <bit>
#include <cstdint>

#include "base/check.h"

namespace troupe {
namespace {

double PowerOfTwo(int exponent) {  // of a normal number
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace

double ExactExp(double x) {
  using N = ExactExpNumbers;
  TROUPE_DCHECK(!(x > 0));
  if (!(x >= N::kLeast)) return 0;
  // |r| <= ln 2 / 2.
  const int n = static_cast<int>(x * N::kLog2E - 0.5);  // to the nearest, as x is not above 0
  const double r = (x - n * N::kLn2High) - n * N::kLn2Low;
  double sum = N::kCoefficients.back();
  for (std::size_t k = N::kCoefficients.size() - 1; k-- > 0;) sum = sum * r + N::kCoefficients[k];
  return sum * PowerOfTwo(n);
}

}  // namespace troupe
