#include "kernels/softmax.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/lanes_reference.h"
#include "kernels/target_testing.h"
#include "quant/exp_reference.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::vector<float> SoftmaxReference(std::vector<float> x, float scale) {
  const float largest = scale * *std::max_element(x.begin(), x.end());
  SixteenLanes sum;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = ExpReference(std::fma(scale, x[i], -largest));
    sum.Add(i, x[i]);
  }
  const float reciprocal = 1.0f / sum.Sum();
  for (float& v : x) v *= reciprocal;
  return x;
}

TEST(SoftmaxRow, HasTheBitsOfItsReferenceForEveryLengthOnEveryTarget) {
  Rng rng(TestSeed());
  for (std::size_t n : {1, 3, 8, 16, 17, 60, 64, 128, 255, 1000}) {
    for (float scale : {1.0f, 0.0883883f, 2.5f}) {
      const std::vector<float> x = NormalFloats(rng, n, 4.0);
      const std::vector<float> expected = SoftmaxReference(x, scale);
      ForEachTarget([&] {
        std::vector<float> out = x;
        SoftmaxRow(out.data(), n, scale);
        ASSERT_EQ(Bits(out), Bits(expected)) << n << ", scale " << scale;
      });
    }
  }
}

// e^x errs by one ulp of its result and by the rounding of its argument, at most half an ulp of
// the largest argument (|argument| * 2^-24); the sum of n positive terms by the same and
// (n / 16 + 4) / 2 ulp; reciprocal and product add half an ulp each.
TEST(SoftmaxRow, IsWithinTheRoundingOfItsOperationsOfTheTrueValue) {
  Rng rng(TestSeed());
  constexpr std::size_t kN = 256;
  const std::vector<float> x = NormalFloats(rng, kN, 5.0);
  const double largest = *std::max_element(x.begin(), x.end());
  const double lowest = *std::min_element(x.begin(), x.end());
  double sum = 0;
  for (float v : x) sum += std::exp(static_cast<double>(v) - largest);
  std::vector<float> out = x;
  SoftmaxRow(out.data(), kN);
  const double bound = 0x1p-24 * (2 * (2 + largest - lowest) + kN / 16.0 + 4 + 2);
  for (std::size_t i = 0; i < kN; ++i) {
    const double truth = std::exp(static_cast<double>(x[i]) - largest) / sum;
    ASSERT_LE(std::abs(static_cast<double>(out[i]) - truth), bound * truth) << i;
  }
}

TEST(SoftmaxRow, GivesOnlyNaNIfALogitIsNaN) {
  ForEachTarget([] {
    for (std::size_t place : {0, 5, 16, 18}) {
      std::vector<float> x(19, 1.0f);
      x[place] = std::numeric_limits<float>::quiet_NaN();
      SoftmaxRow(x.data(), x.size());
      EXPECT_TRUE(std::all_of(x.begin(), x.end(), [](float v) { return std::isnan(v); }));
    }
  });
}

TEST(SoftmaxRow, GivesAMaskedLogitNothing) {
  std::vector<float> x = {2.0f, -std::numeric_limits<float>::infinity(), 2.0f};
  SoftmaxRow(x.data(), x.size());
  EXPECT_EQ(x, (std::vector<float>{0.5f, 0.0f, 0.5f}));
}

TEST(SigmoidRow, HasTheBitsOfItsReferenceForEveryLengthOnEveryTarget) {
  Rng rng(TestSeed());
  for (std::size_t n = 1; n < 40; ++n) {
    const std::vector<float> x = NormalFloats(rng, n, 20.0);
    std::vector<float> expected;
    for (float v : x) expected.push_back(SigmoidReference(v));
    ForEachTarget([&] {
      std::vector<float> out = x;
      SigmoidRow(out.data(), n);
      ASSERT_EQ(Bits(out), Bits(expected)) << n;
    });
  }
}

}  // namespace
}  // namespace troupe
