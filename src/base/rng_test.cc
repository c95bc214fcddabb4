#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(Rng, UniformAtIsUniformOverPlacesAndOverSeeds) {
  const auto check = [](auto&& draw) {
    constexpr std::uint64_t kDraws = 100'000;
    std::vector<int> tenths(10);
    double lagged = 0;  // of one draw and the next, which have nothing to do with each other
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double x = draw(i);
      ASSERT_TRUE(x >= 0 && x < 1);
      ++tenths[static_cast<std::size_t>(10 * x)];
      lagged += (x - 0.5) * (draw(i + 1) - 0.5);
    }
    for (const int n : tenths) EXPECT_NEAR(n, 10'000, 475);  // 5 standard deviations
    EXPECT_NEAR(lagged / kDraws, 0, 5.0 / 12 / std::sqrt(kDraws));
  };
  check([](std::uint64_t i) { return UniformAt(1, i); });
  check([](std::uint64_t i) { return UniformAt(i, 1); });
  check([](std::uint64_t i) { return UniformAt(i, i); });
}

TEST(Rng, UniformAtOfASeedIsNotThatOfAnotherSeedMovedAlong) {
  for (std::uint64_t moved = 0; moved < 64; ++moved) {
    for (std::uint64_t seed = 2; seed < 6; ++seed) {
      EXPECT_NE(UniformAt(1, moved), UniformAt(seed, 0));
      EXPECT_NE(UniformAt(1, 0), UniformAt(seed, moved));
    }
  }
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
