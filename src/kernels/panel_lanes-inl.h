// The vectors of the matrix kernels: kLanes rows of a panel (all 16 on AVX-512, 8 on AVX2, 4 on
// NEON), a lane a row. F holds a float a row, I an int32 a row, C the 4 codes of a chunk a row. The
// kernels are written in these few operations alone, so that a target without vectors (where
// Highway has one lane and no shuffles) runs the same code on arrays: panel_lanes_scalar-inl.h.
// Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_PANEL_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_PANEL_LANES_INL_H_
#undef TROUPE_KERNELS_PANEL_LANES_INL_H_
#else
#define TROUPE_KERNELS_PANEL_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "kernels/fast_exp-inl.h"
#include "kernels/simd.h"
#include "quant/gate_reference.h"
#include "quant/panel_layout.h"

#if HWY_TARGET == HWY_SCALAR
#include "kernels/panel_lanes_scalar-inl.h"
#else

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

using DF = hn::CappedTag<float, kPanelRows>;
using DI = hn::Rebind<std::int32_t, DF>;
using DC = hn::Repartition<std::uint8_t, DF>;
using D16 = hn::Repartition<std::uint16_t, DF>;
using F = hn::Vec<DF>;
using I = hn::Vec<DI>;
using C = hn::Vec<DC>;
inline constexpr std::size_t kLanes = hn::MaxLanes(DF());

HWY_INLINE F ZeroF() { return hn::Zero(DF()); }
HWY_INLINE F SetF(float v) { return hn::Set(DF(), v); }
HWY_INLINE F LoadF(const float* p) { return hn::LoadU(DF(), p); }
HWY_INLINE F LoadF(const std::byte* p) { return LoadF(reinterpret_cast<const float*>(p)); }
HWY_INLINE void StoreF(F v, float* p) { hn::StoreU(v, DF(), p); }
HWY_INLINE F Multiply(F a, F b) { return hn::Mul(a, b); }
HWY_INLINE F AddF(F a, F b) { return hn::Add(a, b); }
// GateReference of its forms.
HWY_INLINE F SiluTimes(F gate, F up) { return hn::Mul(hn::Mul(gate, FastSigmoid(DF(), gate)), up); }

HWY_INLINE F ClampedTimes(F gate, F up) {
  const F most = SetF(kGateLimit), least = SetF(-kGateLimit);
  const F x = hn::IfThenElse(hn::Gt(gate, most), most, gate);
  const F below = hn::IfThenElse(hn::Gt(up, most), most, up);
  const F y = hn::IfThenElse(hn::Lt(below, least), least, below);
  const F swish = hn::Mul(x, FastSigmoid(DF(), hn::Mul(SetF(kGateSlope), x)));
  return hn::Mul(swish, hn::Add(y, SetF(1.0f)));
}

HWY_INLINE F GeluTimes(F gate, F up) {
  const F square = hn::Mul(SetF(kGeluCube), hn::Mul(gate, gate));
  const F inner = hn::Mul(SetF(kGeluSlope), hn::Mul(gate, hn::Add(square, SetF(1.0f))));
  return hn::Mul(hn::Mul(gate, FastSigmoid(DF(), inner)), up);
}

HWY_INLINE F Relu(F gate) { return hn::IfThenElse(hn::Lt(gate, SetF(0.0f)), SetF(0.0f), gate); }
HWY_INLINE F SquaredRelu(F gate) {
  const F x = Relu(gate);
  return hn::Mul(x, x);
}

HWY_INLINE I SetI(std::int32_t v) { return hn::Set(DI(), v); }
HWY_INLINE F ToFloat(I v) { return hn::ConvertTo(DF(), v); }

// kLanes numbers of 16 or 8 bits, to float.
HWY_INLINE F LoadHalves(const std::byte* p) {
  const hn::Rebind<hwy::float16_t, DF> d16;
  return hn::PromoteTo(DF(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}
HWY_INLINE F LoadBf16(const std::byte* p) {
  const hn::Rebind<hwy::bfloat16_t, DF> d16;
  return hn::PromoteTo(DF(), hn::LoadU(d16, reinterpret_cast<const hwy::bfloat16_t*>(p)));
}
HWY_INLINE F LoadBytes(const std::int8_t* p) {
  return ToFloat(hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<std::int8_t, DF>(), p)));
}

// 2^(e - 128) of kLanes bytes e, as HalvedExponentToFloat (base/half.h).
HWY_INLINE F LoadHalvedExponents(const std::byte* p) {
  const hn::Rebind<std::uint8_t, DF> d8;
  const I e = hn::PromoteTo(DI(), hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(p)));
  const I normal = hn::ShiftLeft<23>(hn::Sub(e, SetI(1)));
  const I tiny = hn::ShiftLeft<21>(hn::Add(e, SetI(1)));  // of 0 and 1
  return hn::BitCast(DF(), hn::IfThenElse(hn::Lt(e, SetI(2)), tiny, normal));
}

// kLanes bytes, as HalvedE4M3ToFloat.
HWY_INLINE F LoadHalvedE4M3(const std::byte* p) {
  const hn::Rebind<std::uint8_t, DF> d8;
  const I bits = hn::PromoteTo(DI(), hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(p)));
  const I magnitude = hn::And(bits, SetI(0x7f));
  const I normal = hn::Add(hn::ShiftLeft<20>(magnitude), SetI(119 << 23));
  const F tiny = hn::Mul(ToFloat(magnitude), SetF(0x1p-10f));
  const auto is_tiny = hn::RebindMask(DF(), hn::Lt(magnitude, SetI(8)));
  const auto is_nan = hn::RebindMask(DF(), hn::Eq(bits, SetI(0x7f)));
  const F value = hn::IfThenElse(is_tiny, tiny, hn::BitCast(DF(), normal));
  return hn::IfThenZeroElse(is_nan, value);
}

HWY_INLINE C LoadC(const std::byte* p) {
  return hn::LoadU(DC(), reinterpret_cast<const std::uint8_t*>(p));
}
HWY_INLINE C LoadC(const std::uint8_t* p) { return hn::LoadU(DC(), p); }
HWY_INLINE void StoreC(C v, void* p) { hn::StoreU(v, DC(), static_cast<std::uint8_t*>(p)); }
// kLanes integers, from 32 bits each or from bytes.
HWY_INLINE I LoadI(const std::byte* p) {
  return hn::LoadU(DI(), reinterpret_cast<const std::int32_t*>(p));
}
HWY_INLINE I LoadBytesI(const std::byte* p) {
  const hn::Rebind<std::uint8_t, DF> d8;
  return hn::PromoteTo(DI(), hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(p)));
}
HWY_INLINE C CodesOf(I v) { return hn::BitCast(DC(), v); }
HWY_INLINE I AndI(I a, I b) { return hn::And(a, b); }
HWY_INLINE I OrI(I a, I b) { return hn::Or(a, b); }
HWY_INLINE I XorI(I a, I b) { return hn::Xor(a, b); }
// Up by kBits; down if negative, with copies of the sign.
template <int kBits>
HWY_INLINE I ShiftI(I v) {
  if constexpr (kBits < 0) {
    return hn::ShiftRight<-kBits>(v);
  } else {
    return hn::ShiftLeft<kBits>(v);
  }
}
HWY_INLINE I ShiftDownI(I v, int bits) { return hn::ShiftRightSame(v, bits); }
// table[place] for every lane.
HWY_INLINE I LookUpI(const std::int32_t* table, I places) {
  return hn::GatherIndex(DI(), table, places);
}

HWY_INLINE C SubtractC(C v, std::uint8_t n) { return hn::Sub(v, hn::Set(DC(), n)); }
HWY_INLINE C OrC(C a, C b) { return hn::Or(a, b); }
HWY_INLINE C XorC(C v, std::uint8_t n) { return hn::Xor(v, hn::Set(DC(), n)); }

// table[code] for every byte; codes are below 16.
HWY_INLINE C LookUpC(const std::uint8_t (&table)[16], C codes) {
  return hn::TableLookupBytes(hn::LoadDup128(DC(), table), codes);
}

// The kBits bits from kFrom on of every byte, moved to kTo. The shift is of 16-bit lanes (there is
// none of bytes); the mask removes what came from the other byte.
template <int kBits, int kFrom, int kTo>
HWY_INLINE C Field(C v) {
  const C mask = hn::Set(DC(), static_cast<std::uint8_t>(((1 << kBits) - 1) << kTo));
  if constexpr (kFrom > kTo) {
    v = hn::BitCast(DC(), hn::ShiftRight<kFrom - kTo>(hn::BitCast(D16(), v)));
  } else if constexpr (kFrom < kTo) {
    v = hn::BitCast(DC(), hn::ShiftLeft<kTo - kFrom>(hn::BitCast(D16(), v)));
  }
  return hn::And(v, mask);
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_SCALAR

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// A strip is what one vector holds of a panel: rows [lane, lane + kLanes) of its 16.
inline constexpr std::size_t kStrips = kPanelRows / kLanes;

// Bit c of each byte to bit kTo of the code in chunk c.
template <int kTo>
HWY_INLINE void OrBits(C bits, C (&codes)[kGroupChunks]) {
  codes[0] = OrC(codes[0], Field<1, 0, kTo>(bits));
  codes[1] = OrC(codes[1], Field<1, 1, kTo>(bits));
  codes[2] = OrC(codes[2], Field<1, 2, kTo>(bits));
  codes[3] = OrC(codes[3], Field<1, 3, kTo>(bits));
  codes[4] = OrC(codes[4], Field<1, 4, kTo>(bits));
  codes[5] = OrC(codes[5], Field<1, 5, kTo>(bits));
  codes[6] = OrC(codes[6], Field<1, 6, kTo>(bits));
  codes[7] = OrC(codes[7], Field<1, 7, kTo>(bits));
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
