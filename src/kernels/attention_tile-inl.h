// The one inner loop of attention, for scores and for sums of values alike: a few rows of floats
// times a panel (attention_panels-inl.h), added to what is there. Each output is one chain of fma
// in the order of the panel's rows, so neither the tile's shape nor the target shows in the bits.
// Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_ATTENTION_TILE_INL_H_
#undef TROUPE_KERNELS_ATTENTION_TILE_INL_H_
#else
#define TROUPE_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include "kernels/attention_panels-inl.h"
#include "kernels/attention_work.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Six rows by four vectors are 24 sums, four columns and one factor: 29 of 32 registers. AVX2 has
// 16, and takes one strip of two vectors: 12 + 2 + 1.
inline constexpr std::size_t kTileRows = 6;
inline constexpr std::size_t kTileStrips = HWY_TARGET == HWY_AVX3 ? 4 : 1;

template <std::size_t kRows, std::size_t kStrips>
HWY_INLINE void MultiplyTile(const float* HWY_RESTRICT a, std::size_t a_stride,
                             const float* HWY_RESTRICT panel, std::size_t depth,
                             float* HWY_RESTRICT c, std::size_t c_stride) {
  const LaneTag d;
  constexpr std::size_t kWidth = kStrips * kVectors;
  LaneVec sums[kRows][kWidth];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kWidth; ++v) {
      sums[r][v] = hn::LoadU(d, c + r * c_stride + v * kVectorLanes);
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    LaneVec b[kWidth];
    for (std::size_t v = 0; v < kWidth; ++v) b[v] = hn::Load(d, panel + v * kVectorLanes);
    for (std::size_t r = 0; r < kRows; ++r) {
      const LaneVec factor = hn::Set(d, a[r * a_stride + k]);
      for (std::size_t v = 0; v < kWidth; ++v) sums[r][v] = Fma(factor, b[v], sums[r][v]);
    }
    panel += kPanel;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kWidth; ++v) {
      hn::StoreU(sums[r][v], d, c + r * c_stride + v * kVectorLanes);
    }
  }
}

template <std::size_t kRows>
HWY_INLINE void MultiplyRows(const float* HWY_RESTRICT a, std::size_t a_stride,
                             const float* HWY_RESTRICT panel, std::size_t depth, std::size_t strips,
                             float* HWY_RESTRICT c, std::size_t c_stride) {
  std::size_t s = 0;
  for (; s + kTileStrips <= strips; s += kTileStrips) {
    MultiplyTile<kRows, kTileStrips>(a, a_stride, panel + s * kStrip, depth, c + s * kStrip,
                                     c_stride);
  }
  for (; s < strips; ++s) {
    MultiplyTile<kRows, 1>(a, a_stride, panel + s * kStrip, depth, c + s * kStrip, c_stride);
  }
}

// c[r][..] += a[r][0 .. depth) times the first `depth` rows of the panel, for `rows` <= kTileRows
// rows and 16 * strips columns.
HWY_INLINE void MultiplyPanel(std::size_t rows, const RowMatrix& a, const float* panel,
                              std::size_t depth, std::size_t strips, const RowMatrix& c) {
  switch (rows) {
    case 1:
      return MultiplyRows<1>(a.data, a.stride, panel, depth, strips, c.data, c.stride);
    case 2:
      return MultiplyRows<2>(a.data, a.stride, panel, depth, strips, c.data, c.stride);
    case 3:
      return MultiplyRows<3>(a.data, a.stride, panel, depth, strips, c.data, c.stride);
    case 4:
      return MultiplyRows<4>(a.data, a.stride, panel, depth, strips, c.data, c.stride);
    case 5:
      return MultiplyRows<5>(a.data, a.stride, panel, depth, strips, c.data, c.stride);
    default:
      static_assert(kTileRows == 6);
      return MultiplyRows<6>(a.data, a.stride, panel, depth, strips, c.data, c.stride);
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
