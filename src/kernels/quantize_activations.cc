// QuantizeActivations for every target. Truth: QuantizeActivationsReference.
#include "kernels/quantize_activations.h"

#include <bit>
#include <limits>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize_activations.cc"
#include "hwy/foreach_target.h"  // compiles this file once per target
#include "hwy/highway.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

using DX = hn::CappedTag<float, kGroupCols / 2>;
using DXI = hn::Rebind<std::int32_t, DX>;
inline constexpr std::size_t kHalf = kGroupCols / 2;

// Compared as integers: there a NaN is larger than an infinity, and an infinity than any number.
HWY_INLINE float LargestMagnitude(const float* x) {
  const DXI di;
  auto largest = hn::Zero(di);
  for (std::size_t i = 0; i < kGroupCols; i += hn::Lanes(di)) {
    const auto bits = hn::BitCast(di, hn::Abs(hn::LoadU(DX(), x + i)));
    largest = hn::Max(largest, bits);
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, largest)));
}

HWY_INLINE std::int32_t QuantizeHalf(const float* x, float inverse, std::int8_t* codes) {
  const DX d;
  const DXI di;
  const hn::Rebind<std::int8_t, DX> d8;
  const auto factor = hn::Set(d, inverse);
  auto sum = hn::Zero(di);
  for (std::size_t i = 0; i < kHalf; i += hn::Lanes(d)) {
    const auto code = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), factor));
    sum = hn::Add(sum, code);
    hn::StoreU(hn::DemoteTo(d8, code), d8, codes + i);
  }
  return hn::GetLane(hn::SumOfLanes(di, sum));
}

void QuantizeGroups(const float* HWY_RESTRICT x, std::size_t groups,
                    ActivationGroup* HWY_RESTRICT out) {
  for (std::size_t g = 0; g < groups; ++g, x += kGroupCols, ++out) {
    const float max = LargestMagnitude(x);
    if (!(max >= kTinyActivation && max <= std::numeric_limits<float>::max())) [[unlikely]] {
      *out = {};
      if (!(max < kTinyActivation)) out->scale = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const float inverse = 127.0f / max;
    out->scale = max / 127.0f;
    out->half_sum[0] = QuantizeHalf(x, inverse, out->codes);
    out->half_sum[1] = QuantizeHalf(x + kHalf, inverse, out->codes + kHalf);
    out->sum = out->half_sum[0] + out->half_sum[1];
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(QuantizeGroups);

void QuantizeActivations(const Activations& x, std::size_t first, std::size_t count) {
  TROUPE_CHECK(x.groups != nullptr && first + count <= x.tokens);
  const std::size_t groups = x.cols / kGroupCols;
  for (std::size_t t = first; t < first + count; ++t) {
    HWY_DYNAMIC_DISPATCH(QuantizeGroups)
    (x.Values(t), groups, x.Groups(t));
  }
}

}  // namespace troupe
#endif
