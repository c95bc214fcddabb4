#include "kernels/gates.h"

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

}  // namespace
}  // namespace troupe
