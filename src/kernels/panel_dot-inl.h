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

#include <algorithm>
#include <bit>

#include "kernels/panel_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Whether there is an instruction for the dot, if the CPU has it (dot_product.h).
inline constexpr bool kHasDotInstruction =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || (TROUPE_IS_NEON && HWY_COMPILER_GCC_ACTUAL);

// The 4 activations of a chunk, for every row.
HWY_INLINE I BroadcastChunk(const std::int8_t* x) {
  std::int32_t word;
  std::memcpy(&word, x, sizeof word);
  return SetI(word);
}

// Dot<kInstruction, kMaxCode>::Add(acc, w, x) adds the products of kChunks chunks to acc: w are the
// chunks' codes, at most kMaxCode, x their activations. Where registers are few, kTogether, it is
// AddAll(acc, w, x), of several chunks and tokens: a chunk's codes meet all tokens in turn.
//
// kSignedCodes: it takes codes as signed bytes. Those of 7 bits and less are the same either way;
// those of 8 bits (Q8_0) then come with their offset of 128 already subtracted.

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

template <bool kInstruction, int kMaxCode>
struct Dot {
  static constexpr bool kTogether = false, kSignedCodes = false;
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

#if HWY_TARGET == HWY_AVX3

// Sums of pairs in 16 bits cannot overflow below 2 chunks * 2 products * 63 * 127 = 32004, those of
// one chunk below 2 * 127 * 127 = 32258.
template <int kMaxCode>
requires(kMaxCode <= 127) struct Dot<false, kMaxCode> {
  static constexpr bool kTogether = false, kSignedCodes = false;
  static constexpr std::size_t kChunks = kMaxCode <= 63 ? 2 : 1;
  static HWY_INLINE I Add(I acc, const C* w, const std::int8_t* x) {
    auto pairs = _mm512_maddubs_epi16(w[0].raw, BroadcastChunk(x).raw);
    if constexpr (kChunks == 2) {
      const auto high = _mm512_maddubs_epi16(w[1].raw, BroadcastChunk(x + kChunkCols).raw);
      pairs = _mm512_add_epi16(pairs, high);
    }
    return I{_mm512_add_epi32(acc.raw, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
  }
};

// Codes of 8 bits would overflow: the even and the odd columns are multiplied in 16 bits apart.
template <int kMaxCode>
requires(kMaxCode > 127) struct Dot<false, kMaxCode> {
  static constexpr bool kTogether = false, kSignedCodes = false;
  static constexpr std::size_t kChunks = 1;
  static HWY_INLINE I Add(I acc, const C* w, const std::int8_t* x) {
    const hn::RebindToSigned<D16> d16;
    const auto w16 = hn::BitCast(D16(), *w);
    const auto w_even = hn::BitCast(d16, hn::And(w16, hn::Set(D16(), 0xff)));
    const auto w_odd = hn::BitCast(d16, hn::ShiftRight<8>(w16));
    const auto x16 = hn::BitCast(d16, BroadcastChunk(x));
    const auto x_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(x16));
    const auto x_odd = hn::ShiftRight<8>(x16);
    const I even{_mm512_madd_epi16(w_even.raw, x_even.raw)};
    const I odd{_mm512_madd_epi16(w_odd.raw, x_odd.raw)};
    return hn::Add(acc, hn::Add(even, odd));
  }
};

#else

// Sums of pairs in 16 bits, over as many chunks as cannot overflow: all 8 of a group for codes of 4
// bits, 2 for those of 6, one for those of 7.
template <int kMaxCode>
requires(kMaxCode <= 127) struct Dot<false, kMaxCode> {
  static constexpr bool kTogether = true, kSignedCodes = false;
  static constexpr std::size_t kFitting = std::bit_floor(32767u / (2 * kMaxCode * 127));

  template <std::size_t kChunks, std::size_t kT>
  static HWY_INLINE void AddAll(I (&acc)[kT], const C* w, const std::int8_t* const (&x)[kT]) {
    constexpr std::size_t kSummed = std::min(kFitting, kChunks);
    HWY_UNROLL(8)
    for (std::size_t first = 0; first < kChunks; first += kSummed) {
      __m256i pairs[kT];
      HWY_UNROLL(8)
      for (std::size_t c = first; c < first + kSummed; ++c) {
        HWY_UNROLL(8)
        for (std::size_t t = 0; t < kT; ++t) {
          const __m256i some =
              _mm256_maddubs_epi16(w[c].raw, BroadcastChunk(x[t] + c * kChunkCols).raw);
          pairs[t] = c == first ? some : _mm256_add_epi16(pairs[t], some);
          asm("" : "+x"(pairs[t]));  // added now: GCC would keep all of them for later, in memory
        }
      }
      HWY_UNROLL(8)
      for (std::size_t t = 0; t < kT; ++t) {
        const __m256i sums = _mm256_madd_epi16(pairs[t], _mm256_set1_epi16(1));
        acc[t] = I{_mm256_add_epi32(acc[t].raw, sums)};
      }
    }
  }
};

// Codes of 8 bits would overflow but for their magnitudes, with the signs given to the activations:
// pairs of products are at most 2 * 128 * 127 = 32512.
template <int kMaxCode>
requires(kMaxCode > 127) struct Dot<false, kMaxCode> {
  static constexpr bool kTogether = true, kSignedCodes = true;

  template <std::size_t kChunks, std::size_t kT>
  static HWY_INLINE void AddAll(I (&acc)[kT], const C* w, const std::int8_t* const (&x)[kT]) {
    HWY_UNROLL(8)
    for (std::size_t c = 0; c < kChunks; ++c) {
      const __m256i magnitudes = _mm256_abs_epi8(w[c].raw);
      HWY_UNROLL(8)
      for (std::size_t t = 0; t < kT; ++t) {
        const __m256i chunk = _mm256_sign_epi8(BroadcastChunk(x[t] + c * kChunkCols).raw, w[c].raw);
        const __m256i pairs = _mm256_maddubs_epi16(magnitudes, chunk);
        const __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        acc[t] = I{_mm256_add_epi32(acc[t].raw, sums)};
        asm("" : "+x"(acc[t].raw));  // as above
      }
    }
  }
};

#endif

#elif TROUPE_IS_NEON

template <bool kInstruction, int kMaxCode>
struct Dot {
  static constexpr bool kTogether = false, kSignedCodes = true;
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
  static constexpr bool kTogether = false, kSignedCodes = true;
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
