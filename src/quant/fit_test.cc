#include "quant/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kN = 32;

struct Sample {
  std::array<float, kN> x, w;
  WeightedValues View() const { return {x, w}; }
};

Sample RandomSample(Rng& rng) {
  Sample s;
  for (float& x : s.x) x = static_cast<float>(rng.Normal());
  for (float& w : s.w) w = static_cast<float>(0.1 + rng.Uniform());
  return s;
}

// The least error over a dense grid of lines around the range of the values: what no search that
// looks at a few dozen lines is likely to beat by much.
float LeastErrorOfManyLines(CodeRange range, bool with_min, WeightedValues values) {
  const auto [low, high] = std::minmax_element(values.x.begin(), values.x.end());
  const float width =
      with_min ? *high - std::min(*low, 0.0f) : 2 * std::max(std::fabs(*low), std::fabs(*high));
  const float widest = width / static_cast<float>(range.highest - range.lowest);
  float least = INFINITY;
  for (int i = 0; i < 200; ++i) {
    const float scale = widest * (0.5f + 0.005f * static_cast<float>(i));
    if (!with_min) {
      least = std::min(
          {least, ErrorAt({scale, 0}, range, values), ErrorAt({-scale, 0}, range, values)});
      continue;
    }
    for (int k = 0; k < 200; ++k) {
      const float min = *low * 0.006f * static_cast<float>(k);
      if (min <= 0) least = std::min(least, ErrorAt({scale, min}, range, values));
    }
  }
  return least;
}

TEST(MomentsAt, SumOverTheNearestCodes) {
  const std::array<float, 8> x = {-1, 0, 0.4f, 0.6f, 2, 3, 9, 1};
  const std::array<float, 8> w = {1, 2, 3, 4, 5, 6, 7, 8};
  const Line line = {.scale = 1, .min = -1};  // codes x + 1, within [0, 3]: 0 1 1 2 3 3 3 2
  const Moments m = MomentsAt(line, {0, 3}, {x, w});
  EXPECT_EQ(m.w, 36);
  EXPECT_FLOAT_EQ(m.wx, -1 + 1.2f + 2.4f + 10 + 18 + 63 + 8);
  EXPECT_EQ(m.wc, 2 + 3 + 8 + 15 + 18 + 21 + 16);
  EXPECT_EQ(m.wcc, 2 + 3 + 16 + 45 + 54 + 63 + 32);
  EXPECT_FLOAT_EQ(m.wcx, 1.2f + 4.8f + 30 + 54 + 189 + 16);
  EXPECT_FLOAT_EQ(ErrorAt(line, {0, 3}, {x, w}), 3 * 0.16f + 4 * 0.16f + 6 * 1 + 7 * 49.0f);
  std::array<std::uint8_t, 8> codes;
  CodesAt(line, {0, 3}, x, codes);
  EXPECT_EQ(codes, (std::array<std::uint8_t, 8>{0, 1, 1, 2, 3, 3, 3, 2}));
}

TEST(CodesAt, CountFromTheLowestCodeAndRoundTiesToEven) {
  const std::array<float, 8> x = {-9, -4, -0.5f, 0, 0.5f, 1.5f, 2.5f, 1e30f};
  std::array<std::uint8_t, 8> codes;
  CodesAt({.scale = 1, .min = 0}, {-4, 3}, x, codes);
  EXPECT_EQ(codes, (std::array<std::uint8_t, 8>{0, 0, 4, 4, 4, 6, 6, 7}));
}

TEST(CodesAt, AreThoseOfZeroWhenTheScaleIsZero) {
  const std::array<float, 8> x = {-9, -4, -0.5f, 0, 0.5f, 1.5f, 2.5f, 1e30f};
  std::array<std::uint8_t, 8> codes;
  CodesAt({.scale = 0, .min = -1}, {-4, 3}, x, codes);
  EXPECT_EQ(codes, (std::array<std::uint8_t, 8>{4, 4, 4, 4, 4, 4, 4, 4}));
}

TEST(FitScale, FindsTheGridThatTheValuesLieOn) {
  Sample s;
  for (std::size_t i = 0; i < kN; ++i) {
    s.x[i] = 0.3f * (static_cast<float>(i % 8) - 4);
    s.w[i] = 1 + static_cast<float>(i);
  }
  const Line line = FitScale({-4, 3}, s.View());
  EXPECT_FLOAT_EQ(line.scale, 0.3f);
  EXPECT_EQ(line.min, 0);
}

// The least error over every assignment of codes: 4 to the power of 8 of them.
double LeastErrorOfAllCodes(CodeRange range, WeightedValues values) {
  const int levels = range.highest - range.lowest + 1;
  double total = 0, explained = 0;
  for (std::size_t i = 0; i < values.x.size(); ++i) {
    total += 1.0 * values.w[i] * values.x[i] * values.x[i];
  }
  for (int number = 0; number < std::pow(levels, values.x.size()); ++number) {
    double wcc = 0, wcx = 0;
    int rest = number;
    for (std::size_t i = 0; i < values.x.size(); ++i, rest /= levels) {
      const double c = rest % levels + range.lowest;
      wcc += values.w[i] * c * c;
      wcx += values.w[i] * c * values.x[i];
    }
    if (wcc > 0) explained = std::max(explained, wcx * wcx / wcc);
  }
  return total - explained;
}

TEST(FitScaleExactly, EqualsTheBestOfAllCodes) {
  Rng rng(TestSeed());
  bool faster_one_missed_it = false;
  for (int round = 0; round < 20; ++round) {
    const Sample s = RandomSample(rng);
    const WeightedValues few = {std::span(s.x).first(8), std::span(s.w).first(8)};
    for (const CodeRange range : {CodeRange{-2, 1}, CodeRange{-1, 1}}) {
      const double least = LeastErrorOfAllCodes(range, few);
      EXPECT_NEAR(ErrorAt(FitScaleExactly(range, few), range, few), least, 1e-5) << round;
      faster_one_missed_it |= ErrorAt(FitScale(range, few), range, few) > least + 1e-3;
    }
  }
  EXPECT_TRUE(faster_one_missed_it);  // or there is no need for this one
}

TEST(FitScaleExactly, IsZeroForZeros) {
  const std::array<float, 8> zeros{}, w = {1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(FitScaleExactly({-8, 7}, {zeros, w}).scale, 0);
}

TEST(FitScaleAndMin, FindsTheGridThatTheValuesLieOn) {
  Sample s;
  for (std::size_t i = 0; i < kN; ++i) {
    s.x[i] = 0.3f * static_cast<float>(i % 16) - 1.1f;
    s.w[i] = 1 + static_cast<float>(i);
  }
  const Line line = FitScaleAndMin(15, MinSign::kNotPositive, s.View());
  EXPECT_NEAR(line.scale, 0.3f, 1e-5f);  // the rounding of sums of 32 terms up to 10^4
  EXPECT_NEAR(line.min, -1.1f, 1e-4f);
}

TEST(FitScaleAndMin, AllowsAPositiveMinOnlyWhereAsked) {
  Sample s;
  for (std::size_t i = 0; i < kN; ++i) s.x[i] = 5 + 0.1f * static_cast<float>(i % 16);
  s.w.fill(1);
  EXPECT_NEAR(FitScaleAndMin(15, MinSign::kAny, s.View()).min, 5, 1e-3f);
  EXPECT_EQ(FitScaleAndMin(15, MinSign::kNotPositive, s.View()).min, 0);
}

TEST(FitScaleAndMin, MakesOneValueExact) {
  Sample s;
  s.w.fill(1);
  s.x.fill(-2.5f);
  const Line negative = FitScaleAndMin(15, MinSign::kNotPositive, s.View());
  EXPECT_EQ(negative.scale, 0);
  EXPECT_EQ(negative.min, -2.5f);
  s.x.fill(2.5f);
  EXPECT_LT(ErrorAt(FitScaleAndMin(15, MinSign::kNotPositive, s.View()), {0, 15}, s.View()),
            1e-10f);
  s.x.fill(0);
  EXPECT_EQ(ErrorAt(FitScaleAndMin(15, MinSign::kNotPositive, s.View()), {0, 15}, s.View()), 0);
}

TEST(Fits, AreUntroubledByAWeightThatDwarfsTheOthers) {
  Rng rng(TestSeed());
  for (int round = 0; round < 50; ++round) {
    Sample s = RandomSample(rng);
    s.w.fill(1e-3f);
    s.w[5] = 256;
    const Line line = FitScaleAndMin(15, MinSign::kNotPositive, s.View());
    // The heavy value is at most as wrong as the others together.
    const float miss = ErrorAt(line, {0, 15}, s.View());
    EXPECT_LT(miss, 32 * 1e-3f * 16) << round;  // 32 values, each off by less than 4 sigma
  }
}

// Over many samples the fits come within a tenth of an exhaustive search; taking the
// extremes for the ends of the range, which is what they must improve on, does not.
TEST(Fits, ComeCloseToTheBestOfManyLines) {
  constexpr double kClose = 1.1;
  Rng rng(TestSeed());
  for (const int levels : {4, 8, 16, 32}) {
    const CodeRange symmetric = {-levels / 2, levels / 2 - 1};
    const CodeRange from_min = {0, levels - 1};
    double fit = 0, best = 0, fit_min = 0, best_min = 0, extremes = 0;
    for (int round = 0; round < 40; ++round) {
      const Sample s = RandomSample(rng);
      const WeightedValues v = s.View();
      fit += ErrorAt(FitScale(symmetric, v), symmetric, v);
      best += LeastErrorOfManyLines(symmetric, false, v);
      fit_min += ErrorAt(FitScaleAndMin(levels - 1, MinSign::kNotPositive, v), from_min, v);
      best_min += LeastErrorOfManyLines(from_min, true, v);
      const auto [low, high] = std::minmax_element(s.x.begin(), s.x.end());
      extremes += ErrorAt({(*high - *low) / static_cast<float>(levels - 1), *low}, from_min, v);
    }
    EXPECT_LT(fit, kClose * best) << levels << " levels";
    EXPECT_LT(fit_min, kClose * best_min) << levels << " levels";
    EXPECT_GT(extremes, kClose * best_min) << levels << " levels";
  }
}

}  // namespace
}  // namespace troupe
