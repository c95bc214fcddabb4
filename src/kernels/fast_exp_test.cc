// FastExp is no operation of its own, so this test compiles its own loop for every target.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/target.h"
#include "quant/exp_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_exp_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/fast_exp-inl.h"
#include "testing/test_seed.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// n is a multiple of 16.
void ExpAndSigmoid(const float* x, float* exp, float* sigmoid, std::size_t n) {
  const hn::CappedTag<float, 16> d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(FastExp(d, hn::LoadU(d, x + i)), d, exp + i);
    hn::StoreU(FastSigmoid(d, hn::LoadU(d, x + i)), d, sigmoid + i);
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe {
namespace {

HWY_EXPORT(ExpAndSigmoid);

std::vector<float> HardInputs() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1.0f,
                          kInfinity,
                          -kInfinity,
                          std::numeric_limits<float>::denorm_min(),
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest()};
  for (float edge : {ExpConstants::kLowest, ExpConstants::kHighest, 0.34657359f, -0.34657359f}) {
    x.insert(x.end(), {std::nextafter(edge, -kInfinity), edge, std::nextafter(edge, kInfinity)});
  }
  Rng rng(TestSeed());
  while (x.size() % 16 != 0 || x.size() < 40000) {
    x.push_back(static_cast<float>(rng.Uniform() * 200.0 - 100.0));
  }
  return x;
}

TEST(FastExp, HasTheBitsOfItsReferenceOnEveryTarget) {
  const std::vector<float> x = HardInputs();
  for (Target target : SupportedTargets()) {
    ForceTarget(target);
    std::vector<float> exp(x.size()), sigmoid(x.size());
    HWY_DYNAMIC_DISPATCH(ExpAndSigmoid)(x.data(), exp.data(), sigmoid.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(exp[i]),
                std::bit_cast<std::uint32_t>(ExpReference(x[i])))
          << Name(target) << ", x = " << x[i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(sigmoid[i]),
                std::bit_cast<std::uint32_t>(SigmoidReference(x[i])))
          << Name(target) << ", x = " << x[i];
    }
  }
  ForceTarget(std::nullopt);
}

TEST(FastExp, StaysNaNForNaN) {
  const std::vector<float> x(16, std::numeric_limits<float>::quiet_NaN());
  for (Target target : SupportedTargets()) {
    ForceTarget(target);
    std::vector<float> exp(16), sigmoid(16);
    HWY_DYNAMIC_DISPATCH(ExpAndSigmoid)(x.data(), exp.data(), sigmoid.data(), 16);
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_TRUE(std::isnan(exp[i]) && std::isnan(sigmoid[i])) << Name(target);
    }
  }
  ForceTarget(std::nullopt);
}

// Half an ulp for the last rounding, less than a fifth for what r and the sum before it lost
// (each at most half an ulp of a number times |r| < 0.35), 0.05 for the polynomial itself.
TEST(FastExp, IsWithinOneUlpOfTheTrueValue) {
  double worst = 0;
  for (float x = -87.0f; x <= 88.0f; x += 0.000321f) {
    const double truth = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(truth) - 23);
    worst = std::max(worst, std::abs(ExpReference(x) - truth) / ulp);
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_GT(worst, 0.5) << "no float function is better than half an ulp: the sweep is broken";
}

TEST(FastExp, IsExactlyOneAtZeroZeroFarBelowAndFiniteFarAbove) {
  EXPECT_EQ(ExpReference(0.0f), 1.0f);
  EXPECT_EQ(ExpReference(-88.0f), 0.0f);
  EXPECT_EQ(ExpReference(1e30f), ExpReference(88.0f));
  EXPECT_TRUE(std::isfinite(ExpReference(88.0f)));
}

}  // namespace
}  // namespace troupe
#endif
