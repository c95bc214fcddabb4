#include "base/exact_exp.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(ExactExp, IsAsExactAsItsHeaderSays) {
  Rng rng(TestSeed());
  for (int i = 0; i < 200'000; ++i) {
    const double x = i % 2 == 0 ? -700 * rng.Uniform() : -rng.Uniform();
    const long double truth = std::exp(static_cast<long double>(x));
    const long double error = std::fabs(static_cast<long double>(ExactExp(x)) - truth) / truth;
    ASSERT_LT(error, 5e-16L) << x;
  }
}

TEST(ExactExp, HasItsEnds) {
  EXPECT_EQ(ExactExp(0.0), 1.0);
  EXPECT_EQ(ExactExp(-0.0), 1.0);
  EXPECT_EQ(ExactExp(-701.0), 0.0);
  EXPECT_EQ(ExactExp(-INFINITY), 0.0);
  EXPECT_GT(ExactExp(-700.0), 0.0);
}

// Bits, not values: written down once, they must come out on every machine.
TEST(ExactExp, GivesTheseBitsEverywhere) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(ExactExp(-1.0)), 0x3FD78B56362CEF38u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(ExactExp(-0.1)), 0x3FECF46D99D52B3Au);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(ExactExp(-123.456)), 0x34CDA9FB9E4EE720u);
}

}  // namespace
}  // namespace troupe
