#include "kernels/elementwise.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/axpy.h"
#include "quant/exp_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

void Add(const float* HWY_RESTRICT x, float* HWY_RESTRICT out, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::Add(hn::LoadU(d, out + i), hn::LoadU(d, x + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] += x[i];
}

void Multiply(const float* HWY_RESTRICT x, float* HWY_RESTRICT out, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::Mul(hn::LoadU(d, out + i), hn::LoadU(d, x + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] *= x[i];
}

void Scale(float factor, float* HWY_RESTRICT out, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::Mul(hn::LoadU(d, out + i), hn::Set(d, factor)), d, out + i);
  }
  for (; i < n; ++i) out[i] *= factor;
}

// Slots are the inner loop: out is read and written once, and each element's sum keeps the order of
// the slots.
void MixExperts(std::span<const float> w, std::span<const float* const> rows,
                float* HWY_RESTRICT out, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    auto sum = hn::LoadU(d, out + i);
    for (std::size_t s = 0; s < w.size(); ++s) {
      sum = Fma(hn::Set(d, w[s]), hn::LoadU(d, rows[s] + i), sum);
    }
    hn::StoreU(sum, d, out + i);
  }
  for (; i < n; ++i) {
    for (std::size_t s = 0; s < w.size(); ++s) out[i] = std::fma(w[s], rows[s][i], out[i]);
  }
}

std::size_t ArgMax(const float* HWY_RESTRICT x, std::size_t n) {
  const hn::ScalableTag<float> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto maxima = lowest;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    maxima = hn::Max(maxima, hn::IfThenElse(hn::Eq(v, v), v, lowest));
  }
  float largest = hn::GetLane(hn::MaxOfLanes(d, maxima));
  for (; i < n; ++i) {
    if (x[i] > largest) largest = x[i];
  }
  // The maximum has no index, and the order among equals depends on the target: search for it.
  const auto wanted = hn::Set(d, largest);
  for (i = 0; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto place = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), wanted));
    if (place >= 0) return i + static_cast<std::size_t>(place);
  }
  for (; i < n; ++i) {
    if (x[i] == largest) return i;
  }
  return 0;  // all NaN
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {

HWY_EXPORT(Add);
void Add(const float* x, float* out, std::size_t n) { HWY_DYNAMIC_DISPATCH(Add)(x, out, n); }

HWY_EXPORT(Multiply);
void Multiply(const float* x, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(Multiply)(x, out, n);
}

HWY_EXPORT(Scale);
void Scale(float factor, float* out, std::size_t n) { HWY_DYNAMIC_DISPATCH(Scale)(factor, out, n); }

HWY_EXPORT(MixExperts);
void MixExperts(std::span<const float> w, std::span<const float* const> rows, float* out,
                std::size_t n) {
  TROUPE_CHECK(w.size() == rows.size());
  HWY_DYNAMIC_DISPATCH(MixExperts)(w, rows, out, n);
}

void AddGated(float gate, const float* y, float* out, std::size_t n) {
  Axpy(SigmoidReference(gate), y, out, n);
}

HWY_EXPORT(ArgMax);
std::size_t ArgMax(const float* x, std::size_t n) {
  TROUPE_CHECK(n > 0);
  return HWY_DYNAMIC_DISPATCH(ArgMax)(x, n);
}

}  // namespace troupe
#endif
