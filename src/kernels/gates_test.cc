#include "kernels/gates.h"

#include <cmath>

#include "kernels/target_testing.h"
#include "quant/exp_reference.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(Gates, AreTheirExpressionsOnEveryTargetAndTouchNothingBeside) {
  Rng rng(TestSeed());
  for (std::size_t n = 0; n < 70; ++n) {
    const std::vector<float> gate = NormalFloats(rng, n, 4.0), x = NormalFloats(rng, n + 1);
    std::vector<float> sigmoid = x, silu = x;
    for (std::size_t i = 0; i < n; ++i) {
      sigmoid[i] = x[i] * SigmoidReference(gate[i]);
      silu[i] = x[i] * (gate[i] * SigmoidReference(gate[i]));
    }
    ForEachTarget([&] {
      std::vector<float> out = x;
      MultiplySigmoid(gate.data(), out.data(), n);
      ASSERT_EQ(Bits(out), Bits(sigmoid)) << n;
      out = x;
      MultiplySilu(gate.data(), out.data(), n);
      ASSERT_EQ(Bits(out), Bits(silu)) << n;
    });
  }
}

TEST(Gates, TheSoftCapIsItsExpressionOnEveryTargetAndNearlyTanh) {
  Rng rng(TestSeed());
  constexpr float kCap = 30.0f;
  for (std::size_t n = 0; n < 70; ++n) {
    const std::vector<float> x = NormalFloats(rng, n + 1, 40.0);
    std::vector<float> bent = x;
    for (std::size_t i = 0; i < n; ++i) {
      const float s = SigmoidReference(x[i] * (2.0f / kCap));
      bent[i] = (s + s - 1.0f) * kCap;
      // The sum rounds at 1, of which the difference keeps the error.
      ASSERT_NEAR(bent[i], kCap * std::tanh(x[i] / kCap), 4 * kCap * 1.2e-7f);
    }
    ForEachTarget([&] {
      std::vector<float> out = x;
      SoftCap(kCap, out.data(), n);
      ASSERT_EQ(Bits(out), Bits(bent)) << n;
    });
  }
}

}  // namespace
}  // namespace troupe
