#include "kernels/l2_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/l2_norm.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

void L2Norm(const float* x, float epsilon, float scale, float* out, std::size_t n) {
  const LaneTag d;
  LaneVec sums[kVectors];
  for (LaneVec& sum : sums) sum = hn::Zero(d);
  ForLanes(x, n, 0.0f,
           [&sums](std::size_t v, LaneVec a) HWY_ATTR { sums[v] = Fma(a, a, sums[v]); });
  const float length = scale / std::sqrt(SumLanes(sums) + epsilon);
  const LaneVec factor = hn::Set(d, length);
  std::size_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factor), d, out + i);
  }
  for (; i < n; ++i) out[i] = x[i] * length;
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(L2Norm);
void L2Norm(const float* x, float epsilon, float scale, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(L2Norm)(x, epsilon, scale, out, n);
}

}  // namespace troupe
#endif
