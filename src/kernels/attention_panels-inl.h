// From the cache to panels: up to 64 rows of up to 64 adjacent floats, the right-hand side that
// attention_tile-inl.h multiplies with. A panel of keys has a dimension a row and a position a
// column; a panel of values has a position a row and a dimension a column. Panels are small enough
// to stay in the first-level cache (16 KiB) and are shared by all query rows of a task.
// Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_ATTENTION_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_ATTENTION_PANELS_INL_H_
#undef TROUPE_KERNELS_ATTENTION_PANELS_INL_H_
#else
#define TROUPE_KERNELS_ATTENTION_PANELS_INL_H_
#endif

#include "hwy/cache_control.h"
#include "kernels/halves-inl.h"
#include "kernels/kv_layout.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Columns of a panel, its row stride, and the most rows it has. Columns come in strips of 16.
inline constexpr std::size_t kPanel = 64;
inline constexpr std::size_t kStrip = kLanes;

HWY_INLINE LaneVec LoadInt8(const std::int8_t* from) {
  const LaneTag d;
  const hn::Rebind<std::int8_t, LaneTag> d8;
  const hn::Rebind<std::int32_t, LaneTag> d32;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, from)));
}

// Dimensions [dim, dim + dims) of the 16 positions in one tile of keys.
HWY_INLINE void KeyTileToPanel(const KvLayout& layout, const std::byte* tile, std::size_t dim,
                               std::size_t dims, float* HWY_RESTRICT panel) {
  const LaneTag d;
  if (layout.type == KvType::kF16) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(tile) + dim * kStrip;
    for (std::size_t k = 0; k < dims; ++k) {
      for (std::size_t i = 0; i < kStrip; i += kVectorLanes) {
        hn::Store(LoadHalves(d, from + k * kStrip + i), d, panel + k * kPanel + i);
      }
    }
    return;
  }
  constexpr std::size_t kGroup = KvLayout::kQuantGroup;
  for (std::size_t k = 0; k < dims; k += kGroup) {  // both are multiples of the group
    const std::byte* const group =
        tile + (dim + k) / kGroup * kStrip * (sizeof(std::uint16_t) + kGroup);
    const auto* const scales = reinterpret_cast<const std::uint16_t*>(group);
    const auto* const q = reinterpret_cast<const std::int8_t*>(scales + kStrip);
    for (std::size_t i = 0; i < kStrip; i += kVectorLanes) {
      const LaneVec scale = LoadHalves(d, scales + i);
      for (std::size_t j = 0; j < kGroup; ++j) {
        hn::Store(hn::Mul(scale, LoadInt8(q + j * kStrip + i)), d, panel + (k + j) * kPanel + i);
      }
    }
  }
}

// The cache is read in pieces of a few kilobytes with gaps, which hardware does not foresee; where
// few rows share a panel, decode would wait for memory most of the time. So each panel asks for the
// bytes that the same panel of the next 64 positions, which are at `ahead`, will want. Past the end
// this asks for nothing harmful.
HWY_INLINE void PrefetchBytes(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) hwy::Prefetch(from + i);
}

// Dimensions [dim, dim + dims) of `strips` tiles of keys, the first of which is at `tiles`.
HWY_INLINE void KeysToPanel(const KvLayout& layout, const std::byte* tiles, const std::byte* ahead,
                            std::size_t strips, std::size_t dim, std::size_t dims,
                            float* HWY_RESTRICT panel) {
  const std::size_t tile_bytes = layout.KeyTileBytes();
  for (std::size_t s = 0; s < strips; ++s) {
    const std::byte* const next = ahead + s * tile_bytes;
    PrefetchBytes(next + tile_bytes * dim / layout.k_dim, tile_bytes * dims / layout.k_dim);
    KeyTileToPanel(layout, tiles + s * tile_bytes, dim, dims, panel + s * kStrip);
  }
}

// Dimensions [dim, dim + 16 strips) of `positions` rows of values, the first of which is at `rows`.
HWY_INLINE void ValuesToPanel(const KvLayout& layout, const std::byte* rows, const std::byte* ahead,
                              std::size_t positions, std::size_t dim, std::size_t strips,
                              float* HWY_RESTRICT panel) {
  const LaneTag d;
  constexpr std::size_t kGroup = KvLayout::kQuantGroup;
  const std::size_t row_bytes = layout.ValueRowBytes();
  const std::size_t first_byte = row_bytes * dim / layout.v_dim;
  const std::size_t wanted_bytes = row_bytes * strips * kStrip / layout.v_dim;
  for (std::size_t j = 0; j < positions; ++j) {
    const std::byte* const row = rows + j * row_bytes;
    PrefetchBytes(ahead + j * row_bytes + first_byte, wanted_bytes);
    float* HWY_RESTRICT const to = panel + j * kPanel;
    if (layout.type == KvType::kF16) {
      const auto* from = reinterpret_cast<const std::uint16_t*>(row) + dim;
      for (std::size_t i = 0; i < strips * kStrip; i += kVectorLanes) {
        hn::Store(LoadHalves(d, from + i), d, to + i);
      }
      continue;
    }
    for (std::size_t k = 0; k < strips * kStrip; k += kGroup) {
      const std::byte* const group = row + (dim + k) / kGroup * (sizeof(std::uint16_t) + kGroup);
      const auto* const scale = reinterpret_cast<const std::uint16_t*>(group);
      const auto* const q = reinterpret_cast<const std::int8_t*>(scale + 1);
      const LaneVec factor = hn::Set(d, HalfToFloat(*scale));
      for (std::size_t i = 0; i < kGroup; i += kVectorLanes) {
        hn::Store(hn::Mul(factor, LoadInt8(q + i)), d, to + k + i);
      }
    }
  }
}

// to[j][i] = from[i][j] for the given rows and columns of `from`, multiples of 4.
HWY_INLINE void TransposePanel(const float* HWY_RESTRICT from, std::size_t rows,
                               std::size_t columns, float* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * kPanel + i] = from[i * kPanel + j];
  }
#else
  const hn::Full128<float> d;
  const hn::RepartitionToWide<decltype(d)> dw;
  const auto wide = [dw](auto v) HWY_ATTR { return hn::BitCast(dw, v); };
  const auto store = [d](auto v, float* at) HWY_ATTR { hn::Store(hn::BitCast(d, v), d, at); };
  for (std::size_t i = 0; i < rows; i += 4) {
    for (std::size_t j = 0; j < columns; j += 4) {
      const float* const block = from + i * kPanel + j;
      const auto a = hn::Load(d, block), b = hn::Load(d, block + kPanel);
      const auto c = hn::Load(d, block + 2 * kPanel), e = hn::Load(d, block + 3 * kPanel);
      const auto ab_low = wide(hn::InterleaveLower(d, a, b));  // a0 b0 a1 b1
      const auto ce_low = wide(hn::InterleaveLower(d, c, e));
      const auto ab_high = wide(hn::InterleaveUpper(d, a, b));
      const auto ce_high = wide(hn::InterleaveUpper(d, c, e));
      float* const out = to + j * kPanel + i;
      store(hn::InterleaveLower(dw, ab_low, ce_low), out);
      store(hn::InterleaveUpper(dw, ab_low, ce_low), out + kPanel);
      store(hn::InterleaveLower(dw, ab_high, ce_high), out + 2 * kPanel);
      store(hn::InterleaveUpper(dw, ab_high, ce_high), out + 3 * kPanel);
    }
  }
#endif
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
