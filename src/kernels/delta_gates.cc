#include "kernels/delta_gates.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/delta_gates.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/fast_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V FastSoftplus(D d, V x) {
  const V y = FastExp(d, hn::Neg(hn::Abs(x)));
  const V s = hn::Div(y, hn::Add(hn::Set(d, 2.0f), y));
  const V square = hn::Mul(s, s);
  V p = hn::Set(d, SoftplusConstants::kTerms[0]);
  for (int i = 1; i < 6; ++i) p = Fma(p, square, hn::Set(d, SoftplusConstants::kTerms[i]));
  const V twice = hn::Add(s, s);
  return hn::Add(hn::Max(x, hn::Zero(d)), Fma(hn::Mul(twice, square), p, twice));
}

void DeltaGates(const float* HWY_RESTRICT dt, const float* HWY_RESTRICT a,
                float* HWY_RESTRICT alpha, float* HWY_RESTRICT beta, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto step = FastSoftplus(d, hn::Add(hn::LoadU(d, alpha + i), hn::LoadU(d, dt + i)));
    hn::StoreU(FastExp(d, hn::Mul(hn::LoadU(d, a + i), step)), d, alpha + i);
    hn::StoreU(FastSigmoid(d, hn::LoadU(d, beta + i)), d, beta + i);
  }
  for (; i < n; ++i) {
    alpha[i] = ExpReference(a[i] * SoftplusReference(alpha[i] + dt[i]));
    beta[i] = SigmoidReference(beta[i]);
  }
}

void StateSpaceGates(const float* HWY_RESTRICT dt, const float* HWY_RESTRICT a,
                     float* HWY_RESTRICT decay, float* HWY_RESTRICT step, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto steps = FastSoftplus(d, hn::Add(hn::LoadU(d, decay + i), hn::LoadU(d, dt + i)));
    hn::StoreU(steps, d, step + i);
    hn::StoreU(FastExp(d, hn::Mul(hn::LoadU(d, a + i), steps)), d, decay + i);
  }
  for (; i < n; ++i) {
    step[i] = SoftplusReference(decay[i] + dt[i]);
    decay[i] = ExpReference(a[i] * step[i]);
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(DeltaGates);
void DeltaGates(const float* dt, const float* a, float* alpha, float* beta, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(DeltaGates)(dt, a, alpha, beta, n);
}

HWY_EXPORT(StateSpaceGates);
void StateSpaceGates(const float* dt, const float* a, float* decay, float* step, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(StateSpaceGates)(dt, a, decay, step, n);
}

}  // namespace troupe
#endif
