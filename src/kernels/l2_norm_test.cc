#include "kernels/l2_norm.h"

#include <cmath>

#include "kernels/lanes_reference.h"
#include "kernels/target_testing.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(L2Norm, HasTheBitsOfItsReferenceForEveryLengthOnEveryTarget) {
  Rng rng(TestSeed());
  for (const std::size_t n : {1, 15, 16, 17, 64, 100, 128}) {
    const std::vector<float> x = NormalFloats(rng, n);
    SixteenLanes squares;
    for (std::size_t i = 0; i < n; ++i) squares.AddSquare(i, x[i]);
    const float factor = 0.125f / std::sqrt(squares.Sum() + 1e-6f);
    std::vector<float> expected(n);
    for (std::size_t i = 0; i < n; ++i) expected[i] = x[i] * factor;
    ForEachTarget([&] {
      std::vector<float> out = x;
      L2Norm(out.data(), 1e-6f, 0.125f, out.data(), n);
      ASSERT_EQ(Bits(out), Bits(expected)) << n;
    });
  }
}

TEST(L2Norm, GivesTheLengthThatIsAskedForAndZerosForZeros) {
  const std::vector<float> x = {3, -4}, zeros = {0, 0};
  std::vector<float> out(2);
  L2Norm(x.data(), 0.0f, 2.0f, out.data(), 2);
  EXPECT_FLOAT_EQ(out[0], 1.2f);
  EXPECT_FLOAT_EQ(out[1], -1.6f);
  L2Norm(zeros.data(), 1e-6f, 2.0f, out.data(), 2);
  EXPECT_EQ(out, zeros);
}

}  // namespace
}  // namespace troupe
