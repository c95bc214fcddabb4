#include "kernels/softmax.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/fast_exp-inl.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

void SoftmaxRow(float* x, std::size_t n, float scale) {
  const LaneTag d;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  LaneVec maxima[kVectors];
  for (LaneVec& m : maxima) m = hn::Set(d, kLowest);
  ForLanes(x, n, kLowest,
           [&maxima](std::size_t v, LaneVec a) HWY_ATTR { maxima[v] = hn::Max(maxima[v], a); });
  // Rounding keeps order, so this is the largest scale * x.
  const float largest = scale * LargestLane(maxima);

  const LaneVec factor = hn::Set(d, scale);
  const LaneVec shift = hn::Set(d, -largest);
  std::size_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    hn::StoreU(FastExp(d, Fma(factor, hn::LoadU(d, x + i), shift)), d, x + i);
  }
  for (; i < n; ++i) x[i] = ExpReference(std::fma(scale, x[i], -largest));

  LaneVec sums[kVectors];
  for (LaneVec& sum : sums) sum = hn::Zero(d);
  ForLanes(x, n, 0.0f,
           [&sums](std::size_t v, LaneVec a) HWY_ATTR { sums[v] = hn::Add(sums[v], a); });
  const float reciprocal = 1.0f / SumLanes(sums);
  for (i = 0; i + kVectorLanes <= n; i += kVectorLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, reciprocal)), d, x + i);
  }
  for (; i < n; ++i) x[i] *= reciprocal;
}

void SigmoidRow(float* x, std::size_t n) {
  const LaneTag d;
  std::size_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    hn::StoreU(FastSigmoid(d, hn::LoadU(d, x + i)), d, x + i);
  }
  for (; i < n; ++i) x[i] = SigmoidReference(x[i]);
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(SoftmaxRow);
void SoftmaxRow(float* x, std::size_t n, float scale) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRow)(x, n, scale);
}

HWY_EXPORT(SigmoidRow);
void SigmoidRow(float* x, std::size_t n) { HWY_DYNAMIC_DISPATCH(SigmoidRow)(x, n); }

}  // namespace troupe
#endif
