// One token: every weight is used once, so the speed is that of reading memory. Panels are gone
// through from the first byte to the last, each code from its register straight into the product,
// and lines are asked for ahead of their use. The float operations and their order are those of the
// tiles. Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_PANEL_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_PANEL_DECODE_INL_H_
#undef TROUPE_KERNELS_PANEL_DECODE_INL_H_
#else
#define TROUPE_KERNELS_PANEL_DECODE_INL_H_
#endif

#include "kernels/panel_unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

#ifndef PREFETCH_DIST
#define PREFETCH_DIST 2048
#endif
inline constexpr std::size_t kPrefetchBytes = PREFETCH_DIST;

template <std::size_t kBytes>
HWY_INLINE void PrefetchAhead(const std::byte* p) {
  for (std::size_t i = 0; i < kBytes; i += 64) __builtin_prefetch(p + kPrefetchBytes + i);
}

// The scales of a record: of one run, or decoded from the packed bytes of a K-quant.
template <typename Block>
struct ScaleReader {
  using Layout = PanelLayout<Block>;

  explicit HWY_INLINE ScaleReader(const std::byte* record) : record_(record) {
    if constexpr (kScaleBytes<Block> != 0) packed_.Read(record);
  }
  HWY_INLINE F Scale(std::size_t lane, std::size_t run) const {
    const F d = LoadHalves(record_ + Layout::kD + lane * 2);
    if constexpr (kScaleBytes<Block> == 0) {
      return d;
    } else {
      return Multiply(d, LoadBytes(packed_.scale[run] + lane));
    }
  }
  HWY_INLINE F Min(std::size_t lane, std::size_t run) const {
    const F m = LoadHalves(record_ + Layout::kMin + lane * 2);
    if constexpr (kScaleBytes<Block> == 0) {
      return m;
    } else {
      return Multiply(Multiply(SetF(-1.0f), m), LoadBytes(packed_.min[run] + lane));
    }
  }

 private:
  struct Nothing {};
  const std::byte* record_;
  std::conditional_t<kScaleBytes<Block> != 0, RecordScales<Block>, Nothing> packed_;
};

// out = the kPanelRows products of a panel with one token.
template <typename Block, class Dot>
HWY_NOINLINE void MultiplyPanelByToken(const std::byte* HWY_RESTRICT panel, std::size_t cols,
                                       const ActivationGroup* HWY_RESTRICT x,
                                       float* HWY_RESTRICT out) {
  using Layout = PanelLayout<Block>;
  constexpr std::size_t kRuns = kGroupCols / kScaleCols<Block>;
  constexpr std::size_t kRunChunks = kGroupChunks / kRuns;
  F acc[kStrips];
  for (std::size_t s = 0; s < kStrips; ++s) acc[s] = ZeroF();
  for (std::size_t col = 0; col < cols; col += Block::kElems) {
    PrefetchAhead<Layout::kCodes>(panel);
    const ScaleReader<Block> scales(panel);
    const std::byte* group = panel + Layout::kCodes;
    for (std::size_t g = 0; g < Layout::kGroups; ++g, group += Layout::kGroupBytes, ++x) {
      PrefetchAhead<Layout::kGroupBytes>(group);
      for (std::size_t s = 0; s < kStrips; ++s) {
        C codes[kGroupChunks];
        UnpackGroup<Layout::kBits>(group + s * kLanes * kChunkCols, codes);
        F part = ZeroF();
        for (std::size_t run = 0; run < kRuns; ++run) {
          const std::int32_t sum = kRuns == 1 ? x->sum : x->half_sum[run];
          I dot = SetI(Block::kHasMin ? 0 : -kOffset<Block> * sum);
          for (std::size_t c = run * kRunChunks; c < (run + 1) * kRunChunks; c += Dot::kChunks) {
            I chunks[Dot::kChunks];
            for (std::size_t i = 0; i < Dot::kChunks; ++i) {
              chunks[i] = BroadcastChunk(x->codes + (c + i) * kChunkCols);
            }
            dot = Dot::Add(dot, codes + c, chunks);
          }
          const F scale = scales.Scale(s * kLanes, g * kRuns + run);
          part = run == 0 ? Multiply(ToFloat(dot), scale) : Fma(ToFloat(dot), scale, part);
        }
        if constexpr (Block::kHasMin) {
          for (std::size_t run = 0; run < kRuns; ++run) {
            const std::int32_t sum = kRuns == 1 ? x->sum : x->half_sum[run];
            part = Fma(ToFloat(SetI(sum)), scales.Min(s * kLanes, g * kRuns + run), part);
          }
        }
        acc[s] = Fma(part, SetF(x->scale), acc[s]);
      }
    }
    panel += Layout::kRecordBytes;
  }
  for (std::size_t s = 0; s < kStrips; ++s) StoreF(acc[s], out + s * kLanes);
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
