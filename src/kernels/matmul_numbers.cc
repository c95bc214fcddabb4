// F32, F16 and BF16 weights by float activations: one fused multiply-add a weight and token. Pairs
// of strips (kLanes rows of a panel each) meet tiles of tokens 256 columns at a time, so that the
// weights of a pair are still in the L1 or L2 cache for the next tile.
#include "kernels/matmul_parts.h"
#include "kernels/panel_prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul_numbers.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/panel_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// As many sums as leave registers for weights and an activation.
#if HWY_TARGET == HWY_AVX3 || TROUPE_IS_NEON
inline constexpr std::size_t kTileTokens = 8;
#else
inline constexpr std::size_t kTileTokens = 4;
#endif
inline constexpr std::size_t kBlockCols = 256;

// Tokens whose sums are kept while the columns go by, and the distance of their sums.
inline constexpr std::size_t kTokenBlock = 64;
inline constexpr std::size_t kAccStride = 2 * kLanes;

// Load gives the kLanes weights of a column, which lie kColumnBytes apart.
template <typename Number, F (*Load)(const std::byte*)>
struct Weights {
  static constexpr std::size_t kColumnBytes = kPanelRows * sizeof(Number);

  static HWY_INLINE const std::byte* Strip(const PanelJob& job, std::size_t panel_stride,
                                           std::size_t strip) {
    return job.w.data + strip / kStrips * panel_stride + strip % kStrips * kLanes * sizeof(Number);
  }
  static HWY_INLINE F Column(const std::byte* strip, std::size_t col) {
    Prefetch<1>(strip + col * kColumnBytes);
    return Load(strip + col * kColumnBytes);
  }
};

// Columns [first, end) of kS strips by kT tokens, added to acc[t * kAccStride + s * kLanes].
template <class W, std::size_t kS, std::size_t kT>
HWY_NOINLINE void MultiplyTile(const std::byte* const* HWY_RESTRICT strips, std::size_t first,
                               std::size_t end, const float* const* HWY_RESTRICT tokens,
                               float* HWY_RESTRICT acc) {
  const float* x[kT];
  F sum[kS][kT];
  HWY_UNROLL(16)
  for (std::size_t t = 0; t < kT; ++t) {
    x[t] = tokens[t];
    for (std::size_t s = 0; s < kS; ++s) sum[s][t] = LoadF(acc + t * kAccStride + s * kLanes);
  }
  for (std::size_t k = first; k < end; ++k) {
    F column[kS];
    for (std::size_t s = 0; s < kS; ++s) column[s] = W::Column(strips[s], k);
    HWY_UNROLL(16)
    for (std::size_t t = 0; t < kT; ++t) {
      const F value = SetF(x[t][k]);
      for (std::size_t s = 0; s < kS; ++s) sum[s][t] = Fma(column[s], value, sum[s][t]);
    }
  }
  HWY_UNROLL(16)
  for (std::size_t t = 0; t < kT; ++t) {
    for (std::size_t s = 0; s < kS; ++s) StoreF(sum[s][t], acc + t * kAccStride + s * kLanes);
  }
}

// All tokens of a block, in tiles of kT, then of half as many.
template <class W, std::size_t kS, std::size_t kT>
void MultiplyTokens(const std::byte* const* strips, std::size_t first, std::size_t end,
                    std::span<const float* const> tokens, float* acc) {
  while (tokens.size() >= kT) {
    MultiplyTile<W, kS, kT>(strips, first, end, tokens.data(), acc);
    tokens = tokens.subspan(kT);
    acc += kT * kAccStride;
  }
  if constexpr (kT > 1) MultiplyTokens<W, kS, kT / 2>(strips, first, end, tokens, acc);
}

// kS strips from number `strip` of the matrix on.
template <class W, std::size_t kS>
void MultiplyStrips(const PanelJob& job, std::size_t panel_stride, std::size_t strip,
                    std::size_t first_token, std::span<const float* const> tokens) {
  alignas(64) float acc[kTokenBlock * kAccStride];
  std::fill_n(acc, tokens.size() * kAccStride, 0.0f);
  const std::byte* strips[kS];
  for (std::size_t s = 0; s < kS; ++s) strips[s] = W::Strip(job, panel_stride, strip + s);
  for (std::size_t col = 0; col < job.w.cols; col += kBlockCols) {
    MultiplyTokens<W, kS, kTileTokens>(strips, col, std::min(col + kBlockCols, job.w.cols), tokens,
                                       acc);
  }
  job.Store(acc, kAccStride, first_token, tokens.size(), strip * kLanes, kS * kLanes);
}

template <class W>
void MultiplyPanels(const PanelJob& job) {
  const std::size_t panel_stride = job.w.PanelStride();
  const std::size_t end = (job.first_panel + job.panel_count) * kStrips;
  for (std::size_t first = 0; first < job.Tokens(); first += kTokenBlock) {
    const float* tokens[kTokenBlock];
    const std::size_t count = std::min(kTokenBlock, job.Tokens() - first);
    for (std::size_t i = 0; i < count; ++i) tokens[i] = job.x.Values(job.TokenRow(first + i));
    std::size_t strip = job.first_panel * kStrips;
    for (; strip + 2 <= end; strip += 2) {
      MultiplyStrips<W, 2>(job, panel_stride, strip, first, {tokens, count});
    }
    if (strip < end) MultiplyStrips<W, 1>(job, panel_stride, strip, first, {tokens, count});
  }
}

void MultiplyNumbers(const PanelJob& job) {
  if (job.w.type == TensorType::kF32) return MultiplyPanels<Weights<float, LoadF>>(job);
  if (job.w.type == TensorType::kF16) {
    return MultiplyPanels<Weights<std::uint16_t, LoadHalves>>(job);
  }
  MultiplyPanels<Weights<std::uint16_t, LoadBf16>>(job);
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(MultiplyNumbers);
void MultiplyNumberPanels(const PanelJob& job) { HWY_DYNAMIC_DISPATCH(MultiplyNumbers)(job); }

}  // namespace troupe
#endif
