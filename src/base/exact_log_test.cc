#include "base/exact_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(ExactLog, IsAsExactAsItsHeaderSays) {
  Rng rng(TestSeed());
  for (int i = 0; i < 200'000; ++i) {
    const double x = i % 2 == 0 ? std::exp(1400 * rng.Uniform() - 700) : 2 * rng.Uniform() + 1e-9;
    const long double truth = std::log(static_cast<long double>(x));
    const long double error = std::fabs(static_cast<long double>(ExactLog(x)) - truth);
    ASSERT_LT(error, 2e-16L * std::max(1.0L, std::fabs(truth))) << x;
  }
}

TEST(ExactLog, HasItsEnds) {
  EXPECT_EQ(ExactLog(1.0), 0.0);
  EXPECT_GT(ExactLog(std::numeric_limits<double>::min()), -709);
  EXPECT_LT(ExactLog(std::numeric_limits<double>::max()), 710);
}

// Bits, not values: written down once, they must come out on every machine.
TEST(ExactLog, GivesTheseBitsEverywhere) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(ExactLog(0.1)), 0xC0026BB1BBB55515u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(ExactLog(3.0)), 0x3FF193EA7AAD030Au);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(ExactLog(123456.0)), 0x40277280F4671181u);
}

}  // namespace
}  // namespace troupe
