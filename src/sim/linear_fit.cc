#include "sim/linear_fit.h"

#include <algorithm>
#include <cmath>

namespace troupe {

Result<LinearFit> FitLinearCost(std::span<const CostSample> samples) {
  if (samples.empty()) return InvalidArgument("no measurements to fit a cost to");
  // Minimises sum (1 - base * u - each * v)^2 with u = 1 / seconds, v = amount / seconds.
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (const CostSample& sample : samples) {
    if (!std::isfinite(sample.seconds) || sample.seconds <= 0 || !std::isfinite(sample.amount) ||
        sample.amount < 0) {
      return InvalidArgument("a measurement of {} s for {}, expected positive numbers",
                             sample.seconds, sample.amount);
    }
    const double u = 1 / sample.seconds, v = sample.amount / sample.seconds;
    uu += u * u;
    uv += u * v;
    vv += v * v;
    u1 += u;
    v1 += v;
  }
  LinearFit fit;
  const double determinant = uu * vv - uv * uv;
  if (determinant > 1e-12 * uu * vv) {
    fit.cost = {.base = (u1 * vv - v1 * uv) / determinant,
                .each = (v1 * uu - u1 * uv) / determinant};
  } else {
    fit.cost = {.base = u1 / uu, .each = 0};
  }
  if (fit.cost.base < 0) fit.cost = {.base = 0, .each = v1 / vv};
  if (fit.cost.each < 0) fit.cost = {.base = u1 / uu, .each = 0};
  for (const CostSample& sample : samples) {
    fit.worst_error = std::max(fit.worst_error,
                               std::abs(fit.cost(sample.amount) - sample.seconds) / sample.seconds);
  }
  return fit;
}

}  // namespace troupe
