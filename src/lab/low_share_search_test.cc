#include "lab/low_share_search.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(FindLowShare, EndsNextToWhereTheLossCrosses) {
  Rng rng(TestSeed());
  for (int round = 0; round < 50; ++round) {
    const double crossing = rng.Uniform();
    const auto perplexity = [&](double share) -> Result<double> {
      return 20 * (1 + 0.01 * share / crossing);
    };
    const ShareSearch search = FindLowShare(perplexity, 0.01, 6).value();
    EXPECT_LE(search.best.share, crossing + 1e-9);
    EXPECT_GT(search.best.share, crossing - 0x1p-6);
    EXPECT_LE(search.best.loss, 0.01 + 1e-12);
    EXPECT_EQ(search.trials.size(), 8u);
  }
}

TEST(FindLowShare, TakesAllWhereAllIsGoodEnough) {
  int asked = 0;
  const auto perplexity = [&](double) -> Result<double> { return ++asked, 7.0; };
  const ShareSearch search = FindLowShare(perplexity, 0.01, 6).value();
  EXPECT_EQ(search.best.share, 1);
  EXPECT_EQ(asked, 2);
}

TEST(FindLowShare, TakesNothingWhereEverythingCostsTooMuch) {
  const auto perplexity = [](double share) -> Result<double> { return share > 0 ? 9.0 : 7.0; };
  const ShareSearch search = FindLowShare(perplexity, 0.01, 5).value();
  EXPECT_EQ(search.best.share, 0);
  EXPECT_EQ(search.best.perplexity, 7);
}

TEST(FindLowShare, EndsWithTheFirstMeasurementThatFails) {
  const auto perplexity = [](double share) -> Result<double> {
    if (share == 1) return DataLoss("broken");
    return 7.0;
  };
  EXPECT_EQ(FindLowShare(perplexity, 0.01, 5).status().message(), "broken");
}

}  // namespace
}  // namespace troupe
