#include "kernels/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// Rotates one pair, with the operations in the order that rope.h promises; the vectors below use
// the same order, so that tails and targets agree bit for bit.
HWY_INLINE void RotatePair(float cos, float sin, float& a, float& b) {
  const float a_cos = a * cos;
  const float b_cos = b * cos;
  const float rotated_a = std::fma(-b, sin, a_cos);
  b = std::fma(a, sin, b_cos);
  a = rotated_a;
}

template <class V>
HWY_INLINE void RotatePairs(V cos, V sin, V& a, V& b) {
  const V a_cos = hn::Mul(a, cos);
  const V b_cos = hn::Mul(b, cos);
  const V rotated_a = Fma(hn::Neg(b), sin, a_cos);
  b = Fma(a, sin, b_cos);
  a = rotated_a;
}

// NEOX order: the pair of element i is element i + pairs, so both halves load as plain vectors.
void RotateHalves(const float* HWY_RESTRICT cos, const float* HWY_RESTRICT sin, std::size_t pairs,
                  float* HWY_RESTRICT head) {
  const hn::ScalableTag<float> d;
  float* const second = head + pairs;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= pairs; i += hn::Lanes(d)) {
    auto a = hn::LoadU(d, head + i);
    auto b = hn::LoadU(d, second + i);
    RotatePairs(hn::LoadU(d, cos + i), hn::LoadU(d, sin + i), a, b);
    hn::StoreU(a, d, head + i);
    hn::StoreU(b, d, second + i);
  }
  for (; i < pairs; ++i) RotatePair(cos[i], sin[i], head[i], second[i]);
}

// Llama order: pairs are adjacent, so loads and stores separate even and odd elements.
void RotateAdjacent(const float* HWY_RESTRICT cos, const float* HWY_RESTRICT sin, std::size_t pairs,
                    float* HWY_RESTRICT head) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= pairs; i += hn::Lanes(d)) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, head + 2 * i, a, b);
    RotatePairs(hn::LoadU(d, cos + i), hn::LoadU(d, sin + i), a, b);
    hn::StoreInterleaved2(a, b, d, head + 2 * i);
  }
  for (; i < pairs; ++i) RotatePair(cos[i], sin[i], head[2 * i], head[2 * i + 1]);
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {
namespace {

// The pair whose wavelength makes `turns` full turns within the original context; not an integer.
// In float, as ggml: the result is rounded to an integer, and a last bit could move it by one.
float PairThatTurns(float turns, const RopeParams& p) {
  const auto context = static_cast<float>(p.original_context);
  return static_cast<float>(p.dims) * std::log(context / (turns * 2 * std::numbers::pi_v<float>)) /
         (2 * std::log(p.freq_base));
}

// Per pair, the share of the unscaled (extrapolated) angle: 1 for the fast pairs, 0 for the slow.
std::vector<double> ExtrapolatedShares(const RopeParams& p) {
  std::vector<double> shares(p.dims / 2, 0.0);
  if (p.ext_factor == 0.0f) return shares;
  TROUPE_CHECK(p.original_context > 0);
  const float low = std::max(0.0f, std::floor(PairThatTurns(p.beta_fast, p)));
  const float high =
      std::min(static_cast<float>(p.dims - 1), std::ceil(PairThatTurns(p.beta_slow, p)));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double slope = (static_cast<double>(i) - static_cast<double>(low)) /
                         std::max(0.001, static_cast<double>(high) - static_cast<double>(low));
    shares[i] = (1.0 - std::clamp(slope, 0.0, 1.0)) * static_cast<double>(p.ext_factor);
  }
  return shares;
}

}  // namespace

RopeTable::RopeTable(RopeParams params, std::size_t max_tokens)
    : params_(std::move(params)),
      max_tokens_(max_tokens),
      freqs_(params_.dims / 2),
      table_(max_tokens * params_.dims) {
  TROUPE_CHECK(params_.dims % 2 == 0);
  TROUPE_CHECK(params_.freq_factors.empty() || params_.freq_factors.size() == params_.dims / 2);
  const std::vector<double> shares = ExtrapolatedShares(params_);
  const auto freq_scale = static_cast<double>(params_.freq_scale);
  for (std::size_t i = 0; i < freqs_.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / params_.dims;
    double freq = std::pow(static_cast<double>(params_.freq_base), exponent);
    if (!params_.freq_factors.empty()) freq /= static_cast<double>(params_.freq_factors[i]);
    freqs_[i] = freq * freq_scale * (1.0 - shares[i]) + freq * shares[i];
  }
  magnitude_ = static_cast<double>(params_.attn_factor);
  // YaRN sharpens attention as the context grows.
  if (params_.ext_factor != 0.0f) magnitude_ *= 1.0 + 0.1 * std::log(1.0 / freq_scale);
}

Bytes RopeTable::BytesFor(const RopeParams& params, std::size_t max_tokens) {
  return Bytes(max_tokens * params.dims * sizeof(float) + params.dims / 2 * sizeof(double));
}

void RopeTable::Fill(std::span<const std::int32_t> positions) {
  TROUPE_CHECK(positions.size() <= max_tokens_);
  const std::size_t pairs = freqs_.size();
  for (std::size_t t = 0; t < positions.size(); ++t) {
    float* const row = table_.data() + t * params_.dims;
    for (std::size_t i = 0; i < pairs; ++i) {
      const double angle = positions[t] * freqs_[i];
      row[i] = static_cast<float>(std::cos(angle) * magnitude_);
      row[pairs + i] = static_cast<float>(std::sin(angle) * magnitude_);
    }
  }
}

HWY_EXPORT(RotateHalves);
HWY_EXPORT(RotateAdjacent);
void ApplyRope(const RopeTable& table, std::size_t token, float* head) {
  const std::size_t pairs = table.params().dims / 2;
  if (table.params().pairs == RopePairs::kHalves) {
    HWY_DYNAMIC_DISPATCH(RotateHalves)(table.Cos(token), table.Sin(token), pairs, head);
  } else {
    HWY_DYNAMIC_DISPATCH(RotateAdjacent)(table.Cos(token), table.Sin(token), pairs, head);
  }
}

}  // namespace troupe
#endif
