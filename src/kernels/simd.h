// What every kernel needs in addition to Highway: a multiply-add that is fused on every target.
// Included by kernel sources after hwy/highway.h, once a target, like Highway's own -inl headers;
// hence the toggle in place of #pragma once.
#if defined(TROUPE_KERNELS_SIMD_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_SIMD_H_
#undef TROUPE_KERNELS_SIMD_H_
#else
#define TROUPE_KERNELS_SIMD_H_
#endif

#include <cmath>

#include "hwy/highway.h"
#include "kernels/neon_bits.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// a * b + c, rounded once.
template <class V>
HWY_INLINE V Fma(V a, V b, V c) {
#if HWY_NATIVE_FMA || TROUPE_IS_NEON
  return hn::MulAdd(a, b, c);
#else
  static_assert(HWY_TARGET == HWY_SCALAR, "lanes must be one: a vector would need a loop");
  return hn::Set(hn::DFromV<V>(), std::fma(a.raw, b.raw, c.raw));
#endif
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
