// Axpy for every target; truth: std::fma element by element (axpy_test.cc).
#include "kernels/axpy.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/axpy.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

void Axpy(float a, const float* HWY_RESTRICT x, float* HWY_RESTRICT out, std::size_t n) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, a);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(Fma(factor, hn::LoadU(d, x + i), hn::LoadU(d, out + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = std::fma(a, x[i], out[i]);
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(Axpy);
void Axpy(float a, const float* x, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(Axpy)(a, x, out, n);
}

}  // namespace troupe
#endif
