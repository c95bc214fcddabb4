#include "model/position_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/check.h"

namespace troupe {
namespace {

// Of what is a whole number of buckets but for rounding, as powers of the first far distance are.
constexpr double kRounding = 1e-6;

}  // namespace

std::uint32_t DistanceBuckets::Of(std::int64_t distance) const {
  const std::uint32_t here = both_ways ? count / 2 : count;  // of one direction
  const std::uint32_t first = both_ways && distance > 0 ? here : 0;
  const std::int64_t far = both_ways ? std::abs(distance) : std::max<std::int64_t>(-distance, 0);
  const std::uint32_t exact = here / 2;
  if (far < exact) return first + static_cast<std::uint32_t>(far);
  if (max_distance <= exact) return first + here - 1;
  const double ratio = std::log(static_cast<double>(far) / exact) /
                       std::log(static_cast<double>(max_distance) / exact);
  const double further = std::floor(ratio * (here - exact) + kRounding);
  return first + std::min(here - 1, exact + static_cast<std::uint32_t>(std::max(0.0, further)));
}

void FillPositionBias(const DistanceBuckets& buckets, const float* table, std::uint32_t heads,
                      std::int64_t first, std::size_t count, std::span<float> out) {
  TROUPE_CHECK(out.size() == heads * count);
  for (std::size_t i = 0; i < count; ++i) {
    const float* const numbers =
        table + std::size_t{buckets.Of(first + static_cast<std::int64_t>(i))} * heads;
    for (std::uint32_t head = 0; head < heads; ++head) out[head * count + i] = numbers[head];
  }
}

}  // namespace troupe
