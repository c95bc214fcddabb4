// Sixteen virtual lanes. Reductions run over these, whatever number of lanes the target has, so
// that every target gives the same sum. Included once a target; simd.h says why the toggle. The
// scalar truth for tests is lanes_reference.h.
#if defined(TROUPE_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_LANES_INL_H_
#undef TROUPE_KERNELS_LANES_INL_H_
#else
#define TROUPE_KERNELS_LANES_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Vectors of at most 16 floats; kVectors of them are the 16 lanes.
using LaneTag = hn::CappedTag<float, 16>;
using LaneVec = hn::Vec<LaneTag>;
inline constexpr std::size_t kLanes = 16;
inline constexpr std::size_t kVectorLanes = hn::MaxLanes(LaneTag());
inline constexpr std::size_t kVectors = kLanes / kVectorLanes;

// Calls step(vector index, x vector) for all x, 16 at a time; what is missing at the end is `pad`.
template <class Step>
HWY_INLINE void ForLanes(const float* HWY_RESTRICT x, std::size_t n, float pad, Step&& step) {
  const LaneTag d;
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t v = 0; v < kVectors; ++v) step(v, hn::LoadU(d, x + i + v * kVectorLanes));
  }
  if (i == n) return;
  HWY_ALIGN float tail[kLanes];
  std::fill(std::copy(x + i, x + n, tail), tail + kLanes, pad);
  for (std::size_t v = 0; v < kVectors; ++v) step(v, hn::Load(d, tail + v * kVectorLanes));
}

// Adds the upper half of the lanes to the lower one, four times: i + 8, then i + 4, i + 2, i + 1.
HWY_INLINE float SumLanes(const LaneVec (&sums)[kVectors]) {
  const LaneTag d;
  HWY_ALIGN float lanes[kLanes];
  for (std::size_t v = 0; v < kVectors; ++v) hn::Store(sums[v], d, lanes + v * kVectorLanes);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

HWY_INLINE float LargestLane(const LaneVec (&maxima)[kVectors]) {
  const LaneTag d;
  LaneVec m = maxima[0];
  for (std::size_t v = 1; v < kVectors; ++v) m = hn::Max(m, maxima[v]);
  return hn::GetLane(hn::MaxOfLanes(d, m));
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
