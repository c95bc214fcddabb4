// The storing half of kv_layout.h: floats to halves or to int8 with a scale, and to their places.
#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernels/kv_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kv_store.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/halves-inl.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

constexpr std::size_t kGroup = KvLayout::kQuantGroup;
constexpr float kLargestHalf = 65504.0f;

// n <= 16 floats to 16 halves, the rest zero.
HWY_INLINE void ToHalves(const float* HWY_RESTRICT x, std::size_t n,
                         std::uint16_t* HWY_RESTRICT halves) {
  const LaneTag d;
  ForLanes(x, n, 0.0f, [d, halves](std::size_t v, LaneVec a) HWY_ATTR {
    // An infinity would make every later sum over the positions NaN. NaN itself stays.
    const LaneVec saturated = hn::Clamp(a, hn::Set(d, -kLargestHalf), hn::Set(d, kLargestHalf));
    StoreHalves(d, hn::IfThenElse(hn::Eq(a, a), saturated, a), halves + v * kVectorLanes);
  });
}

// 32 floats to int8; returns the scale as a half. The rounded scale divides, so that a value errs
// by half a step and not by the scale's rounding as well.
HWY_INLINE std::uint16_t ToInt8(const float* HWY_RESTRICT x, std::int8_t* HWY_RESTRICT q) {
  const LaneTag d;
  const hn::Rebind<std::int8_t, LaneTag> d8;
  LaneVec maxima[kVectors];
  for (LaneVec& m : maxima) m = hn::Zero(d);
  ForLanes(x, kGroup, 0.0f, [&maxima](std::size_t v, LaneVec a) HWY_ATTR {
    maxima[v] = hn::Max(maxima[v], hn::Abs(a));
  });
  const float exact = LargestLane(maxima) / 127.0f;
  const std::uint16_t scale = FloatToHalf(exact < kLargestHalf ? exact : kLargestHalf);
  const LaneVec inverse = hn::Set(d, scale == 0 ? 0.0f : 1.0f / HalfToFloat(scale));
  for (std::size_t i = 0; i < kGroup; i += kVectorLanes) {
    const LaneVec scaled = hn::Mul(hn::LoadU(d, x + i), inverse);
    const LaneVec limited = hn::Clamp(scaled, hn::Set(d, -127.0f), hn::Set(d, 127.0f));
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(limited)), d8, q + i);
  }
  return scale;
}

void StoreKey(const KvLayout& layout, std::byte* tile, std::size_t lane, const float* row) {
  constexpr std::size_t kTile = KvLayout::kTile;
  if (layout.type == KvType::kF16) {
    auto* const to = reinterpret_cast<std::uint16_t*>(tile) + lane;
    for (std::size_t i = 0; i < layout.k_dim; i += kLanes) {
      const std::size_t n = std::min<std::size_t>(kLanes, layout.k_dim - i);
      HWY_ALIGN std::uint16_t halves[kLanes];
      ToHalves(row + i, n, halves);
      for (std::size_t j = 0; j < n; ++j) to[(i + j) * kTile] = halves[j];
    }
    return;
  }
  for (std::size_t i = 0; i < layout.k_dim; i += kGroup) {
    HWY_ALIGN std::int8_t q[kGroup];
    reinterpret_cast<std::uint16_t*>(tile)[lane] = ToInt8(row + i, q);
    tile += kTile * sizeof(std::uint16_t);
    for (std::size_t j = 0; j < kGroup; ++j) {
      tile[j * kTile + lane] = static_cast<std::byte>(q[j]);
    }
    tile += kGroup * kTile;
  }
}

void StoreValue(const KvLayout& layout, std::byte* to, const float* row) {
  if (layout.type == KvType::kF16) {
    auto* const halves = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < layout.v_dim; i += kLanes) {
      ToHalves(row + i, std::min<std::size_t>(kLanes, layout.v_dim - i), halves + i);
    }
    return;
  }
  for (std::size_t i = 0; i < layout.v_dim; i += kGroup) {
    auto* const scale = reinterpret_cast<std::uint16_t*>(to);
    *scale = ToInt8(row + i, reinterpret_cast<std::int8_t*>(scale + 1));
    to += sizeof(std::uint16_t) + kGroup;
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(StoreKey);
void StoreKeys(const KvLayout& layout, std::byte* page, std::size_t head, std::size_t first,
               std::size_t tokens, const float* rows, std::size_t stride) {
  TROUPE_CHECK(first + tokens <= layout.capacity);
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::size_t position = first + t;
    HWY_DYNAMIC_DISPATCH(StoreKey)
    (layout, page + layout.KeyTileOffset(head, position), position % KvLayout::kTile,
     rows + t * stride);
  }
}

HWY_EXPORT(StoreValue);
void StoreValues(const KvLayout& layout, std::byte* page, std::size_t head, std::size_t first,
                 std::size_t tokens, const float* rows, std::size_t stride) {
  TROUPE_CHECK(!layout.values_in_keys && first + tokens <= layout.capacity);
  for (std::size_t t = 0; t < tokens; ++t) {
    HWY_DYNAMIC_DISPATCH(StoreValue)
    (layout, page + layout.ValueRowOffset(head, first + t), rows + t * stride);
  }
}

}  // namespace troupe
#endif
