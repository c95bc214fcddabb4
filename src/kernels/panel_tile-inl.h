// The innermost loops of the matrix products: a tile of kS strips (kLanes rows each) by kT tokens
// over some columns, its sums added to floats in memory. The order of float operations is that of
// quant/panel_reference.h. Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_PANEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_PANEL_TILE_INL_H_
#undef TROUPE_KERNELS_PANEL_TILE_INL_H_
#else
#define TROUPE_KERNELS_PANEL_TILE_INL_H_
#endif

#include "kernels/panel_dot-inl.h"
#include "kernels/panel_lanes-inl.h"
#include "quant/activations.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Strips that a tile takes at most: every broadcast of an activation serves them all. acc holds
// kMaxStrips * kLanes floats a token.
inline constexpr std::size_t kMaxStrips = 2;
inline constexpr std::size_t kAccStride = kMaxStrips * kLanes;

// Tokens of a full tile: as many sums as leave registers for weights and a broadcast.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr std::size_t kTileTokens = 8;
#else
inline constexpr std::size_t kTileTokens = 4;
#endif

// Columns of a strip unpacked at a time: with 64 tokens' sums they fit an L1 cache of 32 KiB.
inline constexpr std::size_t kBlockCols = 256;
inline constexpr std::size_t kBlockGroups = kBlockCols / kGroupCols;

// Codes with a byte each, and the scale (and min) of each of the Runs runs of columns in a group.
template <std::size_t Runs, bool HasMin>
struct UnpackedStrip {
  static constexpr std::size_t kRuns = Runs;
  static constexpr bool kHasMin = HasMin;
  alignas(64) std::uint8_t codes[kBlockGroups][kGroupChunks][4 * kLanes];
  alignas(64) float scale[kBlockGroups][kRuns][kLanes];
  alignas(64) float min[HasMin ? kBlockGroups : 1][kRuns][kLanes];
};

template <class Strip, class Dot, std::size_t kS, std::size_t kT>
HWY_NOINLINE void MultiplyBlockTile(const Strip* HWY_RESTRICT strips, std::size_t groups,
                                    int offset, const ActivationGroup* const* HWY_RESTRICT tokens,
                                    std::size_t first_group, float* HWY_RESTRICT acc) {
  constexpr std::size_t kRunChunks = kGroupChunks / Strip::kRuns;
  const ActivationGroup* x[kT];
  for (std::size_t t = 0; t < kT; ++t) x[t] = tokens[t] + first_group;
  for (std::size_t g = 0; g < groups; ++g) {
    F part[kS][kT];
    for (std::size_t run = 0; run < Strip::kRuns; ++run) {
      I dot[kS][kT];
      HWY_UNROLL(16)
      for (std::size_t t = 0; t < kT; ++t) {
        const std::int32_t sum = Strip::kRuns == 1 ? x[t][g].sum : x[t][g].half_sum[run];
        const I start = Strip::kHasMin ? SetI(0) : SetI(-offset * sum);
        for (std::size_t s = 0; s < kS; ++s) dot[s][t] = start;
      }
      for (std::size_t c = run * kRunChunks; c < (run + 1) * kRunChunks; c += Dot::kChunks) {
        C w[kS][Dot::kChunks];
        for (std::size_t s = 0; s < kS; ++s) {
          for (std::size_t i = 0; i < Dot::kChunks; ++i) w[s][i] = LoadC(strips[s].codes[g][c + i]);
        }
        HWY_UNROLL(16)
        for (std::size_t t = 0; t < kT; ++t) {
          I chunk[Dot::kChunks];
          for (std::size_t i = 0; i < Dot::kChunks; ++i) {
            chunk[i] = BroadcastChunk(x[t][g].codes + (c + i) * kChunkCols);
          }
          for (std::size_t s = 0; s < kS; ++s) dot[s][t] = Dot::Add(dot[s][t], w[s], chunk);
        }
      }
      for (std::size_t s = 0; s < kS; ++s) {
        const F scale = LoadF(strips[s].scale[g][run]);
        HWY_UNROLL(16)
        for (std::size_t t = 0; t < kT; ++t) {
          const F exact = ToFloat(dot[s][t]);
          part[s][t] = run == 0 ? Multiply(exact, scale) : Fma(exact, scale, part[s][t]);
        }
      }
    }
    if constexpr (Strip::kHasMin) {
      for (std::size_t run = 0; run < Strip::kRuns; ++run) {
        HWY_UNROLL(16)
        for (std::size_t t = 0; t < kT; ++t) {
          const std::int32_t sum = Strip::kRuns == 1 ? x[t][g].sum : x[t][g].half_sum[run];
          const F weight = ToFloat(SetI(sum));
          for (std::size_t s = 0; s < kS; ++s) {
            part[s][t] = Fma(weight, LoadF(strips[s].min[g][run]), part[s][t]);
          }
        }
      }
    }
    HWY_UNROLL(16)
    for (std::size_t t = 0; t < kT; ++t) {
      const F scale = SetF(x[t][g].scale);
      for (std::size_t s = 0; s < kS; ++s) {
        float* sum = acc + t * kAccStride + s * kLanes;
        StoreF(Fma(part[s][t], scale, LoadF(sum)), sum);
      }
    }
  }
}

// Plain numbers: Load gives the kLanes weights of a column, which lie `column_bytes` apart.
template <F (*Load)(const std::byte*), std::size_t kS, std::size_t kT>
HWY_NOINLINE void MultiplyNumberTile(const std::byte* const* HWY_RESTRICT strips, std::size_t cols,
                                     std::size_t column_bytes,
                                     const float* const* HWY_RESTRICT tokens, std::size_t first_col,
                                     float* HWY_RESTRICT acc) {
  F sum[kS][kT];
  const float* x[kT];
  for (std::size_t t = 0; t < kT; ++t) {
    x[t] = tokens[t] + first_col;
    for (std::size_t s = 0; s < kS; ++s) sum[s][t] = LoadF(acc + t * kAccStride + s * kLanes);
  }
  const std::byte* w[kS];
  for (std::size_t s = 0; s < kS; ++s) w[s] = strips[s];
  for (std::size_t k = 0; k < cols; ++k) {
    F column[kS];
    for (std::size_t s = 0; s < kS; ++s) {
      column[s] = Load(w[s] + k * column_bytes);
      Prefetch<1>(w[s] + k * column_bytes);
    }
    HWY_UNROLL(16)
    for (std::size_t t = 0; t < kT; ++t) {
      const F v = SetF(x[t][k]);
      for (std::size_t s = 0; s < kS; ++s) sum[s][t] = Fma(column[s], v, sum[s][t]);
    }
  }
  for (std::size_t t = 0; t < kT; ++t) {
    for (std::size_t s = 0; s < kS; ++s) StoreF(sum[s][t], acc + t * kAccStride + s * kLanes);
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
