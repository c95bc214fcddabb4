#include "kernels/rms_norm.h"

#include "kernels/lanes_reference.h"
#include "kernels/target_testing.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::vector<float> RmsNormReference(const std::vector<float>& x, const float* weight,
                                    float epsilon) {
  SixteenLanes squares;
  for (std::size_t i = 0; i < x.size(); ++i) squares.AddSquare(i, x[i]);
  const float mean = squares.Sum() / static_cast<float>(x.size());
  const float scale = 1.0f / std::sqrt(mean + epsilon);
  std::vector<float> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i] * scale;
    if (weight != nullptr) out[i] *= weight[i];
  }
  return out;
}

TEST(RmsNorm, HasTheBitsOfItsReferenceForEveryLengthOnEveryTarget) {
  Rng rng(TestSeed());
  for (std::size_t n : {1, 7, 15, 16, 17, 31, 64, 100, 128, 2048, 2051}) {
    const std::vector<float> x = NormalFloats(rng, n), weight = NormalFloats(rng, n);
    const std::vector<float> weighed = RmsNormReference(x, weight.data(), 1e-6f);
    const std::vector<float> bare = RmsNormReference(x, nullptr, 1e-6f);
    ForEachTarget([&] {
      std::vector<float> out(n);
      RmsNorm(x.data(), weight.data(), 1e-6f, out.data(), n);
      ASSERT_EQ(Bits(out), Bits(weighed)) << n;
      RmsNorm(x.data(), nullptr, 1e-6f, out.data(), n);
      ASSERT_EQ(Bits(out), Bits(bare)) << n;
      std::vector<float> in_place = x;
      RmsNorm(in_place.data(), weight.data(), 1e-6f, in_place.data(), n);
      ASSERT_EQ(Bits(in_place), Bits(weighed)) << n;
    });
  }
}

// The sum of n positive squares over 16 lanes errs by at most (n / 16 + 4) / 2 ulp of it, halved by
// the square root; division, root, division and two products add half an ulp each, some halved.
TEST(RmsNorm, IsWithinTheRoundingOfItsOperationsOfTheTrueValue) {
  Rng rng(TestSeed());
  constexpr std::size_t kN = 4096;
  const std::vector<float> x = NormalFloats(rng, kN, 30.0), weight = NormalFloats(rng, kN);
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  const double scale = 1.0 / std::sqrt(sum / kN + 1e-5);
  std::vector<float> out(kN);
  RmsNorm(x.data(), weight.data(), 1e-5f, out.data(), kN);
  const double bound = 0x1p-24 * ((kN / 16.0 + 4) / 2 + 4);
  for (std::size_t i = 0; i < kN; ++i) {
    const double truth = static_cast<double>(x[i]) * scale * static_cast<double>(weight[i]);
    ASSERT_LE(std::abs(static_cast<double>(out[i]) - truth), bound * std::abs(truth)) << i;
  }
}

TEST(RmsNorm, OfZerosIsZerosBecauseOfEpsilon) {
  const std::vector<float> zeros(100, 0.0f);
  std::vector<float> out(100, 1.0f);
  RmsNorm(zeros.data(), nullptr, 1e-6f, out.data(), 100);
  EXPECT_EQ(out, zeros);
}

}  // namespace
}  // namespace troupe
