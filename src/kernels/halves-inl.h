// Halves in memory to vectors of floats and back, rounding to nearest even on every target (Highway
// truncates on its scalar target). Truth: base/half.h. Included once a target; simd.h says why the
// toggle.
#if defined(TROUPE_KERNELS_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_HALVES_INL_H_
#undef TROUPE_KERNELS_HALVES_INL_H_
#else
#define TROUPE_KERNELS_HALVES_INL_H_
#endif

#include <cstdint>

#include "base/half.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> LoadHalves(D d, const std::uint16_t* from) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, HalfToFloat(*from));
#else
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
#endif
}

template <class D>
HWY_INLINE void StoreHalves([[maybe_unused]] D d, hn::Vec<D> v, std::uint16_t* to) {
#if HWY_TARGET == HWY_SCALAR
  *to = FloatToHalf(hn::GetLane(v));
#else
  const hn::Rebind<hwy::float16_t, D> dh;
  hn::StoreU(hn::DemoteTo(dh, v), dh, reinterpret_cast<hwy::float16_t*>(to));
#endif
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
