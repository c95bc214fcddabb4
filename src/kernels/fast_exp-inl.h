// e^x and the logistic function on vectors, for kernels that have them inside; truth, accuracy and
// range: quant/exp_reference.h. Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_FAST_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_FAST_EXP_INL_H_
#undef TROUPE_KERNELS_FAST_EXP_INL_H_
#else
#define TROUPE_KERNELS_FAST_EXP_INL_H_
#endif

#include "kernels/simd.h"
#include "quant/exp_reference.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V FastExp(D d, V x) {
  using C = ExpConstants;
  const hn::RebindToUnsigned<D> du;
  const V round = hn::Set(d, C::kRound);
  const V one = hn::Set(d, 1.0f);
  const V clamped = hn::Min(x, hn::Set(d, C::kHighest));
  const V shifted = Fma(clamped, hn::Set(d, C::kLog2E), round);
  const V n = hn::Sub(shifted, round);
  V r = Fma(n, hn::Set(d, -C::kLn2High), clamped);
  r = Fma(n, hn::Set(d, -C::kLn2Low), r);
  V p = Fma(hn::Set(d, C::kC6), r, hn::Set(d, C::kC5));
  p = Fma(p, r, hn::Set(d, C::kC4));
  p = Fma(p, r, hn::Set(d, C::kC3));
  p = Fma(p, r, hn::Set(d, C::kC2));
  p = Fma(p, r, one);
  p = Fma(p, r, one);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(du, shifted));
  const V result = hn::BitCast(d, hn::Add(hn::BitCast(du, p), exponent));
  // The comparison is false for NaN, whose bits above are arbitrary.
  const V in_range = hn::IfThenElseZero(hn::Ge(x, hn::Set(d, C::kLowest)), result);
  return hn::IfThenElse(hn::Eq(x, x), in_range, x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V FastSigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, FastExp(d, hn::Neg(x))));
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
