#include "sim/linear_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

LinearFit Fit(const std::vector<CostSample>& samples) { return FitLinearCost(samples).value(); }

TEST(LinearFitTest, FindsTheLineThatSamplesLieOn) {
  const LinearFit fit = Fit({{1, 5.0}, {10, 23.0}, {100, 203.0}});
  EXPECT_NEAR(fit.cost.base, 3, 1e-9);
  EXPECT_NEAR(fit.cost.each, 2, 1e-9);
  EXPECT_LT(fit.worst_error, 1e-9);
}

TEST(LinearFitTest, ASmallSampleCountsAsMuchAsALargeOne) {
  // Of absolute errors the line would go through the large ones and miss the small by half.
  const LinearFit fit = Fit({{1, 1}, {1000, 900}, {1000, 1100}});
  EXPECT_NEAR(fit.cost(1), 1, 0.01);
  EXPECT_NEAR(fit.worst_error, 0.1, 0.03);
}

TEST(LinearFitTest, NeitherBaseNorSlopeIsNegative) {
  const LinearFit falling = Fit({{1, 2}, {10, 1}});
  EXPECT_EQ(falling.cost.each, 0);
  EXPECT_GT(falling.cost.base, 0);
  const LinearFit steep = Fit({{1, 1}, {10, 100}});
  EXPECT_EQ(steep.cost.base, 0);
  EXPECT_GT(steep.cost.each, 0);
}

TEST(LinearFitTest, OneSampleIsAConstant) { EXPECT_EQ(Fit({{7, 3}}).cost, (LinearCost{3, 0})); }

TEST(LinearFitTest, RefusesWhatIsNoMeasurement) {
  EXPECT_FALSE(FitLinearCost({}).ok());
  EXPECT_FALSE(FitLinearCost(std::vector<CostSample>{{1, 0}}).ok());
  EXPECT_FALSE(FitLinearCost(std::vector<CostSample>{{-1, 1}}).ok());
}

}  // namespace
}  // namespace troupe
