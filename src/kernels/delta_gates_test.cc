#include "kernels/delta_gates.h"

#include <cmath>

#include "kernels/target_testing.h"
#include "quant/exp_reference.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(Softplus, IsWithinTwoUlpOfTheTruthAndNeverNegative) {
  for (float x = -90.0f; x < 90.0f; x += 0.0173f) {
    const double truth = std::log1p(std::exp(static_cast<double>(x)));
    const float found = SoftplusReference(x);
    ASSERT_GE(found, 0.0f) << x;
    if (x < -86.0f) continue;  // where e^x becomes 0
    // e^x, the division, the series' last sum and the sum with x: one ulp, and three halves of one.
    ASSERT_LE(std::abs(static_cast<double>(found) - truth), 0x1p-23 * 2.5 * truth) << x;
  }
}

TEST(DeltaGates, HaveTheBitsOfTheirExpressionsOnEveryTarget) {
  Rng rng(TestSeed());
  for (const std::size_t n : {1, 7, 16, 32, 45}) {
    const std::vector<float> dt = NormalFloats(rng, n, 3.0), alpha = NormalFloats(rng, n, 10.0);
    const std::vector<float> beta = NormalFloats(rng, n, 5.0);
    std::vector<float> a = NormalFloats(rng, n), decay(n), learned(n);
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = -std::fabs(a[i]);
      decay[i] = ExpReference(a[i] * SoftplusReference(alpha[i] + dt[i]));
      learned[i] = SigmoidReference(beta[i]);
    }
    ForEachTarget([&] {
      std::vector<float> x = alpha, y = beta;
      DeltaGates(dt.data(), a.data(), x.data(), y.data(), n);
      ASSERT_EQ(Bits(x), Bits(decay)) << n;
      ASSERT_EQ(Bits(y), Bits(learned)) << n;
    });
  }
}

TEST(StateSpaceGates, HaveTheBitsOfTheirExpressionsOnEveryTarget) {
  Rng rng(TestSeed());
  for (const std::size_t n : {1, 7, 16, 48}) {
    const std::vector<float> dt = NormalFloats(rng, n, 3.0), raw = NormalFloats(rng, n, 10.0);
    std::vector<float> a = NormalFloats(rng, n), decays(n), steps(n);
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = -std::fabs(a[i]);
      steps[i] = SoftplusReference(raw[i] + dt[i]);
      decays[i] = ExpReference(a[i] * steps[i]);
    }
    ForEachTarget([&] {
      std::vector<float> decay = raw, step(n);
      StateSpaceGates(dt.data(), a.data(), decay.data(), step.data(), n);
      ASSERT_EQ(Bits(decay), Bits(decays)) << n;
      ASSERT_EQ(Bits(step), Bits(steps)) << n;
    });
  }
}

}  // namespace
}  // namespace troupe
