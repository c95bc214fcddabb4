#include "lab/compared_logits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe {
namespace {

TEST(LogProbability, IsTheLogarithmOfTheSoftmax) {
  const std::vector<float> logits = {0.0f, std::log(3.0f), 0.0f};  // 1/5, 3/5, 1/5
  EXPECT_NEAR(LogProbability(logits, 1), std::log(0.6), 1e-7);
  EXPECT_NEAR(LogProbability(logits, 2), std::log(0.2), 1e-7);
}

TEST(LogProbability, SurvivesLogitsWhoseExponentialsOverflow) {
  const std::vector<float> logits = {1000.0f, 1000.0f};
  EXPECT_NEAR(LogProbability(logits, 0), std::log(0.5), 1e-12);
}

TEST(KlDivergence, IsZeroForEqualAndAsWorkedByHandForOthers) {
  const std::vector<float> half = {0.0f, 0.0f};
  const std::vector<float> quarter = {0.0f, std::log(3.0f)};
  EXPECT_EQ(KlDivergence(half, half), 0.0);
  // 1/2 ln((1/2)/(1/4)) + 1/2 ln((1/2)/(3/4))
  EXPECT_NEAR(KlDivergence(half, quarter), 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3), 1e-7);
  EXPECT_GT(KlDivergence(quarter, half), 0);
}

TEST(ComparedLogits, AreWhatTheTokensWorkedByHandGive) {
  const std::vector<float> half = {0.0f, 0.0f}, quarter = {0.0f, std::log(3.0f)};
  ComparedLogits compared(1);
  compared.Add(0, half, half);
  compared.Add(1, half, quarter);  // 3/4 in place of 1/2
  EXPECT_EQ(compared.tokens(), 2u);
  const Comparison found = compared.Get();
  const double kl = KlDivergence(half, quarter);
  EXPECT_NEAR(found.kl.mean, kl / 2, 1e-12);
  EXPECT_EQ(compared.KlBlocks(), (std::vector<BlockMean::Block>{{1, 0}, {1, kl}}));
  EXPECT_EQ(found.worst_kl, kl);
  EXPECT_GE(found.kl.least, 0);
  EXPECT_GT(found.kl.most, found.kl.mean);
  EXPECT_NEAR(found.perplexity_ratio.mean, std::exp(-std::log(1.5) / 2), 1e-7);
  EXPECT_EQ(found.top1_agreement.mean, 0.5);
  EXPECT_NEAR(found.mean_probability_change, 0.125, 1e-7);
}

}  // namespace
}  // namespace troupe
