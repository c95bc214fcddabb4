#include "kernels/rope.h"

#include <cmath>
#include <numbers>

#include "kernels/target_testing.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// The published definitions, written per pair and in double throughout. Neither shares code with
// the table nor knows its arrangement.
struct CosSin {
  double cos, sin;
};

CosSin TrueRotation(const RopeParams& p, std::int32_t position, std::size_t pair) {
  const double base = static_cast<double>(p.freq_base);
  double extrapolated = position * std::pow(base, -2.0 * static_cast<double>(pair) / p.dims);
  if (!p.freq_factors.empty()) extrapolated /= static_cast<double>(p.freq_factors[pair]);
  const double interpolated = static_cast<double>(p.freq_scale) * extrapolated;
  double angle = interpolated, magnitude = static_cast<double>(p.attn_factor);
  if (p.ext_factor != 0.0f) {
    const auto pair_that_turns = [&](float turns) {
      return p.dims *
             std::log(p.original_context / (static_cast<double>(turns) * 2 * std::numbers::pi)) /
             (2 * std::log(base));
    };
    const double low = std::max(0.0, std::floor(pair_that_turns(p.beta_fast)));
    const double high = std::min(p.dims - 1.0, std::ceil(pair_that_turns(p.beta_slow)));
    const double ramp = (static_cast<double>(pair) - low) / std::max(0.001, high - low);
    const double mix = (1 - std::min(1.0, std::max(0.0, ramp))) * static_cast<double>(p.ext_factor);
    angle = interpolated * (1 - mix) + extrapolated * mix;
    magnitude *= 1.0 + 0.1 * std::log(1.0 / static_cast<double>(p.freq_scale));
  }
  return {std::cos(angle) * magnitude, std::sin(angle) * magnitude};
}

std::vector<RopeParams> Variants() {
  std::vector<RopeParams> variants;
  for (RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
    variants.push_back({.pairs = pairs, .dims = 128, .freq_base = 1e6f});
    variants.push_back({.pairs = pairs, .dims = 20});
    variants.push_back({.pairs = pairs, .dims = 64, .freq_scale = 0.25f});
    variants.push_back({.pairs = pairs, .dims = 8, .freq_factors = {1.0f, 2.0f, 4.5f, 8.0f}});
    variants.push_back({.pairs = pairs,
                        .dims = 64,
                        .freq_scale = 1.0f / 40,
                        .ext_factor = 1.0f,
                        .attn_factor = 0.9f,
                        .original_context = 4096});
  }
  return variants;
}

// Angles are exact to 2^-52 relative in double, so below position 2^17 cosine and sine err by less
// than 2^17 * 2^-51 before they are rounded to float: half an ulp of a number below 2.
TEST(RopeTable, HoldsTheTrueCosinesAndSinesForEveryScaling) {
  const std::vector<std::int32_t> positions = {0, 1, 2, 77, 4095, 4096, 131071};
  for (const RopeParams& params : Variants()) {
    RopeTable table(params, positions.size());
    table.Fill(positions);
    for (std::size_t t = 0; t < positions.size(); ++t) {
      for (std::size_t i = 0; i < params.dims / 2; ++i) {
        const CosSin truth = TrueRotation(params, positions[t], i);
        ASSERT_NEAR(table.Cos(t)[i], truth.cos, 0x1p-23 * 0.51) << positions[t] << ", pair " << i;
        ASSERT_NEAR(table.Sin(t)[i], truth.sin, 0x1p-23 * 0.51) << positions[t] << ", pair " << i;
      }
    }
  }
}

// DeepSeek-V2's own settings: pairs below 10 turn often enough to keep their angle, pairs from 23
// on are slowed down 40 times. Worked out by hand from YaRN's formula: 64 ln(4096 / 64 pi) /
// (2 ln 10000) = 10.47 and 64 ln(4096 / 2 pi) / (2 ln 10000) = 22.51.
TEST(RopeTable, KeepsFastPairsAndSlowsSlowPairsUnderYarn) {
  const RopeParams yarn{.dims = 64,
                        .freq_scale = 1.0f / 40,
                        .ext_factor = 1.0f,
                        .attn_factor = 1.0f / (1.0f + 0.1f * std::log(40.0f)),
                        .original_context = 4096};
  RopeTable scaled(yarn, 1);
  RopeTable plain({.dims = 64}, 2);
  const std::vector<std::int32_t> at = {400}, then = {400, 10};
  scaled.Fill(at);
  plain.Fill(then);
  for (std::size_t i = 0; i <= 10; ++i) EXPECT_NEAR(scaled.Sin(0)[i], plain.Sin(0)[i], 1e-6) << i;
  for (std::size_t i = 23; i < 32; ++i) EXPECT_NEAR(scaled.Sin(0)[i], plain.Sin(1)[i], 1e-6) << i;
  EXPECT_GT(std::abs(scaled.Sin(0)[16] - plain.Sin(0)[16]), 1e-3);
  EXPECT_GT(std::abs(scaled.Sin(0)[16] - plain.Sin(1)[16]), 1e-3);
}

TEST(ApplyRope, HasTheBitsOfItsExpressionAndLeavesTheOtherDimensionsOnEveryTarget) {
  Rng rng(TestSeed());
  const std::vector<std::int32_t> positions = {5, 0, 1234};
  for (const RopeParams& params : Variants()) {
    RopeTable table(params, positions.size());
    table.Fill(positions);
    const std::size_t pairs = params.dims / 2;
    for (std::size_t t = 0; t < positions.size(); ++t) {
      const std::vector<float> head = NormalFloats(rng, params.dims + 6);
      std::vector<float> expected = head;
      for (std::size_t i = 0; i < pairs; ++i) {
        const bool halves = params.pairs == RopePairs::kHalves;
        const std::size_t first = halves ? i : 2 * i, second = halves ? i + pairs : 2 * i + 1;
        const float a = head[first], b = head[second];
        const float cos = table.Cos(t)[i], sin = table.Sin(t)[i];
        expected[first] = std::fma(-b, sin, a * cos);
        expected[second] = std::fma(a, sin, b * cos);
      }
      ForEachTarget([&] {
        std::vector<float> out = head;
        ApplyRope(table, t, out.data());
        ASSERT_EQ(Bits(out), Bits(expected)) << params.dims << " dimensions";
      });
    }
  }
}

TEST(ApplyRope, MakesScoresDependOnTheDistanceOfTwoTokensAlone) {
  Rng rng(TestSeed());
  const std::vector<std::int32_t> positions = {3, 10, 903, 910};  // twice seven apart
  for (RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
    RopeTable table({.pairs = pairs, .dims = 64}, 4);
    table.Fill(positions);
    const std::vector<float> q = NormalFloats(rng, 64), k = NormalFloats(rng, 64);
    double scores[2] = {};
    for (std::size_t far = 0; far < 2; ++far) {
      std::vector<float> rotated_q = q, rotated_k = k;
      ApplyRope(table, 2 * far, rotated_k.data());
      ApplyRope(table, 2 * far + 1, rotated_q.data());
      for (std::size_t i = 0; i < 64; ++i) {
        scores[far] += static_cast<double>(rotated_q[i]) * static_cast<double>(rotated_k[i]);
      }
    }
    // 64 products of numbers of about 1, each wrong by a few 2^-24.
    EXPECT_NEAR(scores[0], scores[1], 64 * 16 * 0x1p-24);
  }
}

TEST(RopeTable, TakesTheBytesItSays) {
  const RopeParams params{.dims = 64};
  EXPECT_EQ(RopeTable::BytesFor(params, 512), Bytes(512 * 64 * 4 + 32 * 8));
}

}  // namespace
}  // namespace troupe
