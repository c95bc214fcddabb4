#include "kernels/rms_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rms_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

void RmsNorm(const float* x, const float* weight, float epsilon, float* out, std::size_t n) {
  const LaneTag d;
  LaneVec sums[kVectors];
  for (LaneVec& sum : sums) sum = hn::Zero(d);
  ForLanes(x, n, 0.0f,
           [&sums](std::size_t v, LaneVec a) HWY_ATTR { sums[v] = Fma(a, a, sums[v]); });
  const float mean = SumLanes(sums) / static_cast<float>(n);
  const float scale = 1.0f / std::sqrt(mean + epsilon);

  const LaneVec factor = hn::Set(d, scale);
  std::size_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    LaneVec y = hn::Mul(hn::LoadU(d, x + i), factor);
    if (weight != nullptr) y = hn::Mul(y, hn::LoadU(d, weight + i));
    hn::StoreU(y, d, out + i);
  }
  for (; i < n; ++i) {
    const float y = x[i] * scale;
    out[i] = weight != nullptr ? y * weight[i] : y;
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(RmsNorm);
void RmsNorm(const float* x, const float* weight, float epsilon, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(x, weight, epsilon, out, n);
}

}  // namespace troupe
#endif
