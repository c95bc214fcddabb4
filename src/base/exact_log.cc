#include "base/exact_log.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace troupe {

double ExactLog(double x) {
  using N = ExactLogNumbers;
  TROUPE_DCHECK(x >= std::numeric_limits<double>::min());
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int n = static_cast<int>(bits >> 52) - 1023;
  double one_and_f = std::bit_cast<double>((bits & 0xfffffffffffff) | std::uint64_t{1023} << 52);
  if (one_and_f > N::kRootOfTwo) {
    one_and_f *= 0.5;
    ++n;
  }
  const double f = one_and_f - 1;
  const double s = f / (2 + f);
  const double s2 = s * s;
  double series = 0;
  for (std::size_t k = N::kCoefficients.size(); k-- > 0;) {
    series = (series + N::kCoefficients[k]) * s2;
  }
  const double half_square = 0.5 * f * f;
  return n * N::kLn2High - ((half_square - (s * (half_square + series) + n * N::kLn2Low)) - f);
}

}  // namespace troupe
