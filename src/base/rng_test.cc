#include "base/rng.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

TEST(Rng, SameSeedSameNumbersOtherSeedOthers) {
  Rng a(1), b(1), c(2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t x = a.Next();
    EXPECT_EQ(x, b.Next());
    differs |= x != c.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(Rng, BelowStaysBelowAndReachesEveryValue) {
  Rng rng(7);
  std::vector<int> seen(5);
  for (int i = 0; i < 10'000; ++i) ++seen[rng.Below(5)];
  for (const int n : seen) EXPECT_NEAR(n, 2000, 300);  // 7 standard deviations
}

TEST(Rng, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(3);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
}

}  // namespace
}  // namespace troupe
