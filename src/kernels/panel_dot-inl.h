// Exact products of unsigned codes with signed activations, 4 columns of kLanes rows at a time,
// in each way the targets have: an instruction made for it (VNNI, AVX-VNNI, NEON's sdot), or
// multiplications of pairs to 16 bits and their sums. Included once a target; simd.h says why the
// toggle.
#if defined(TROUPE_KERNELS_PANEL_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_PANEL_DOT_INL_H_
#undef TROUPE_KERNELS_PANEL_DOT_INL_H_
#else
#define TROUPE_KERNELS_PANEL_DOT_INL_H_
#endif

#include "kernels/panel_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Whether the multiplier takes codes as signed bytes. Codes of 7 bits and less are the same either
// way; those of 8 bits (Q8_0) then come with their offset of 128 already subtracted.
inline constexpr bool kSignedCodes = HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_SCALAR;

// Whether there is an instruction for the dot, if the CPU has it (dot_product.h).
inline constexpr bool kHasDotInstruction = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 ||
                                           (HWY_TARGET == HWY_NEON && HWY_COMPILER_GCC_ACTUAL);

// The 4 activations of a chunk, for every row.
HWY_INLINE I BroadcastChunk(const std::int8_t* x) {
  std::int32_t word;
  std::memcpy(&word, x, sizeof word);
  return SetI(word);
}

// Dot<kInstruction, kMaxCode>::Add(acc, w, x) adds the products of kChunks chunks to acc: w are the
// chunks' codes, at most kMaxCode, x their activations.

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

template <bool kInstruction, int kMaxCode>
struct Dot {
  static constexpr std::size_t kChunks = 1;
  static HWY_INLINE I Add(I acc, const C* w, const std::int8_t* x) {
    // Written as text because neither target's attributes include it: dot_product.h tells why, and
    // whoever instantiates this has asked UseDotProduct().
#if HWY_TARGET == HWY_AVX3
    const auto& chunk = *reinterpret_cast<const std::int8_t(*)[kChunkCols]>(x);
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc.raw) : "v"(w->raw), "m"(chunk));
#else
    const I chunk = BroadcastChunk(x);
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc.raw) : "x"(w->raw), "x"(chunk.raw));
#endif
    return acc;
  }
};

// Sums of pairs in 16 bits cannot overflow below 2 chunks * 2 products * 63 * 127 = 32004.
template <int kMaxCode>
requires(kMaxCode <= 63) struct Dot<false, kMaxCode> {
  static constexpr std::size_t kChunks = 2;
  static HWY_INLINE I Add(I acc, const C* w, const std::int8_t* x) {
#if HWY_TARGET == HWY_AVX3
    const auto low = _mm512_maddubs_epi16(w[0].raw, BroadcastChunk(x).raw);
    const auto high = _mm512_maddubs_epi16(w[1].raw, BroadcastChunk(x + kChunkCols).raw);
    const auto pairs = _mm512_add_epi16(low, high);
    return I{_mm512_add_epi32(acc.raw, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
#else
    const auto low = _mm256_maddubs_epi16(w[0].raw, BroadcastChunk(x).raw);
    const auto high = _mm256_maddubs_epi16(w[1].raw, BroadcastChunk(x + kChunkCols).raw);
    const auto pairs = _mm256_add_epi16(low, high);
    return I{_mm256_add_epi32(acc.raw, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))};
#endif
  }
};

// Codes of 8 bits would overflow: the even and the odd columns are multiplied in 16 bits apart.
template <int kMaxCode>
requires(kMaxCode > 63) struct Dot<false, kMaxCode> {
  static constexpr std::size_t kChunks = 1;
  static HWY_INLINE I Add(I acc, const C* w, const std::int8_t* x) {
    const hn::RebindToSigned<D16> d16;
    const auto w16 = hn::BitCast(D16(), *w);
    const auto w_even = hn::BitCast(d16, hn::And(w16, hn::Set(D16(), 0xff)));
    const auto w_odd = hn::BitCast(d16, hn::ShiftRight<8>(w16));
    const auto x16 = hn::BitCast(d16, BroadcastChunk(x));
    const auto x_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(x16));
    const auto x_odd = hn::ShiftRight<8>(x16);
#if HWY_TARGET == HWY_AVX3
    const I even{_mm512_madd_epi16(w_even.raw, x_even.raw)};
    const I odd{_mm512_madd_epi16(w_odd.raw, x_odd.raw)};
#else
    const I even{_mm256_madd_epi16(w_even.raw, x_even.raw)};
    const I odd{_mm256_madd_epi16(w_odd.raw, x_odd.raw)};
#endif
    return hn::Add(acc, hn::Add(even, odd));
  }
};

#elif HWY_TARGET == HWY_NEON

template <bool kInstruction, int kMaxCode>
struct Dot {
  static constexpr std::size_t kChunks = 1;
  static HWY_INLINE I Add(I acc, const C* w, const std::int8_t* x) {
    const int8x16_t codes = vreinterpretq_s8_u8(w->raw);
    const int8x16_t activations = vreinterpretq_s8_s32(BroadcastChunk(x).raw);
    if constexpr (kInstruction) {
      asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
          : "+w"(acc.raw)
          : "w"(codes), "w"(activations));
      return acc;
    }
    // Pairs of products: at most 2 * 128 * 127 = 32512 in 16 bits.
    const int16x8_t low = vmull_s8(vget_low_s8(codes), vget_low_s8(activations));
    const int16x8_t high = vmull_high_s8(codes, activations);
    return I{vpadalq_s16(acc.raw, vpaddq_s16(low, high))};
  }
};

#else

template <bool kInstruction, int kMaxCode>
struct Dot {
  static constexpr std::size_t kChunks = 1;
  static HWY_INLINE I Add(I acc, const C* w, const std::int8_t* x) {
    std::int8_t codes[kWordsBytes];
    std::memcpy(codes, w->v, sizeof codes);
    for (std::size_t i = 0; i < kWordsBytes; ++i)
      acc.v[i / kChunkCols] += codes[i] * x[i % kChunkCols];
    return acc;
  }
};

#endif

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
