#include "kernels/gates.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gates.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/fast_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

void MultiplySigmoid(const float* HWY_RESTRICT gate, float* HWY_RESTRICT out, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto g = FastSigmoid(d, hn::LoadU(d, gate + i));
    hn::StoreU(hn::Mul(hn::LoadU(d, out + i), g), d, out + i);
  }
  for (; i < n; ++i) out[i] *= SigmoidReference(gate[i]);
}

void MultiplySilu(const float* HWY_RESTRICT gate, float* HWY_RESTRICT out, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, gate + i);
    hn::StoreU(hn::Mul(hn::LoadU(d, out + i), hn::Mul(x, FastSigmoid(d, x))), d, out + i);
  }
  for (; i < n; ++i) out[i] *= gate[i] * SigmoidReference(gate[i]);
}

void SoftCap(float cap, float* HWY_RESTRICT out, std::size_t n) {
  const hn::ScalableTag<float> d;
  const float slope = 2.0f / cap;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto s = FastSigmoid(d, hn::Mul(hn::LoadU(d, out + i), hn::Set(d, slope)));
    const auto bent = hn::Sub(hn::Add(s, s), hn::Set(d, 1.0f));
    hn::StoreU(hn::Mul(bent, hn::Set(d, cap)), d, out + i);
  }
  for (; i < n; ++i) {
    const float s = SigmoidReference(out[i] * slope);
    out[i] = (s + s - 1.0f) * cap;
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(MultiplySigmoid);
void MultiplySigmoid(const float* gate, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(MultiplySigmoid)(gate, out, n);
}

HWY_EXPORT(MultiplySilu);
void MultiplySilu(const float* gate, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(MultiplySilu)(gate, out, n);
}

HWY_EXPORT(SoftCap);
void SoftCap(float cap, float* out, std::size_t n) { HWY_DYNAMIC_DISPATCH(SoftCap)(cap, out, n); }

}  // namespace troupe
#endif
