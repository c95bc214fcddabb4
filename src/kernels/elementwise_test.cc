#include "kernels/elementwise.h"

#include <limits>

#include "kernels/axpy.h"
#include "kernels/target_testing.h"
#include "quant/exp_reference.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Elementwise, AddMultiplyAndScaleAreTheirExpressionsAndTouchNothingBeside) {
  Rng rng(TestSeed());
  for (std::size_t n = 0; n < 70; ++n) {
    const std::vector<float> x = NormalFloats(rng, n), y = NormalFloats(rng, n + 1);
    std::vector<float> sum = y, product = y, scaled = y;
    for (std::size_t i = 0; i < n; ++i) {
      sum[i] = y[i] + x[i];
      product[i] = y[i] * x[i];
      scaled[i] = y[i] * 0.3f;
    }
    ForEachTarget([&] {
      std::vector<float> out = y;
      Add(x.data(), out.data(), n);
      ASSERT_EQ(Bits(out), Bits(sum)) << n;
      out = y;
      Multiply(x.data(), out.data(), n);
      ASSERT_EQ(Bits(out), Bits(product)) << n;
      out = y;
      Scale(0.3f, out.data(), n);
      ASSERT_EQ(Bits(out), Bits(scaled)) << n;
    });
  }
}

TEST(MixExperts, HasTheBitsOfOneAxpyASlotInOrder) {
  Rng rng(TestSeed());
  for (std::size_t n : {1, 15, 64, 77, 2048}) {
    for (std::size_t slots : {0, 1, 2, 8}) {
      const std::vector<float> w = NormalFloats(rng, slots), begin = NormalFloats(rng, n);
      std::vector<std::vector<float>> rows;
      std::vector<const float*> pointers;
      for (std::size_t s = 0; s < slots; ++s) rows.push_back(NormalFloats(rng, n));
      for (const auto& row : rows) pointers.push_back(row.data());
      std::vector<float> expected = begin;
      for (std::size_t s = 0; s < slots; ++s) Axpy(w[s], rows[s].data(), expected.data(), n);
      ForEachTarget([&] {
        std::vector<float> out = begin;
        MixExperts(w, pointers, out.data(), n);
        ASSERT_EQ(Bits(out), Bits(expected)) << n << " elements, " << slots << " slots";
      });
    }
  }
}

TEST(AddGated, WeighsByTheLogisticFunction) {
  std::vector<float> out = {1.0f, 2.0f};
  const std::vector<float> y = {10.0f, -20.0f};
  AddGated(0.7f, y.data(), out.data(), 2);
  const float g = SigmoidReference(0.7f);
  EXPECT_EQ(out, (std::vector<float>{std::fma(g, 10.0f, 1.0f), std::fma(g, -20.0f, 2.0f)}));
  EXPECT_NEAR(g, 0.66818777, 1e-7);  // 1 / (1 + e^-0.7) within an ulp or two
}

std::size_t ArgMaxReference(const std::vector<float>& x) {
  std::size_t best = x.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isnan(x[i]) && (best == x.size() || x[i] > x[best])) best = i;
  }
  return best == x.size() ? 0 : best;
}

TEST(ArgMax, IsTheFirstOfTheLargestWhateverElseIsThere) {
  Rng rng(TestSeed());
  for (std::size_t n = 1; n < 100; ++n) {
    std::vector<float> x(n);
    // Few values, so that ties, signed zeros, NaN and infinities meet often.
    const std::vector<float> values = {-0.0f, 0.0f, 1.0f, kNaN, -kInfinity, -3.0f};
    for (float& v : x) v = values[rng.Below(values.size())];
    if (n % 10 == 0) x[rng.Below(n)] = kInfinity;
    ForEachTarget([&] { ASSERT_EQ(ArgMax(x.data(), n), ArgMaxReference(x)) << n; });
  }
}

TEST(ArgMax, IsZeroIfAllAreNaNAndFindsMinusInfinityAmongNaN) {
  std::vector<float> x(37, kNaN);
  ForEachTarget([&] {
    EXPECT_EQ(ArgMax(x.data(), x.size()), 0u);
    x[20] = -kInfinity;
    EXPECT_EQ(ArgMax(x.data(), x.size()), 20u);
    x[20] = kNaN;
  });
}

}  // namespace
}  // namespace troupe
