#include "expert/substitution/quality_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace troupe {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

MeasuredChain Chain(std::string name, double loss, double error, double bytes) {
  return {
      .chain = std::move(name),
      .tokens = 1000,
      .perplexity_ratio = {.mean = 1 + loss, .least = 1 + loss - error, .most = 1 + loss + error},
      .bytes = bytes};
}

// The stronger, the fewer bytes and the more loss; all a little worse at a quarter than at a half.
std::vector<MeasuredShare> Curve() {
  return {{.share = 0.5,
           .exact = Chain("exact", 0, 0, 100),
           .chains = {Chain("smoe:alpha=0.1", 0.002, 0, 80), Chain("smoe:alpha=0.3", 0.008, 0, 60),
                      Chain("drop", 0.04, 0, 10)}},
          {.share = 0.25,
           .exact = Chain("exact", 0, 0, 200),
           .chains = {Chain("smoe:alpha=0.1", 0.004, 0, 150), Chain("smoe:alpha=0.3", 0.015, 0, 90),
                      Chain("drop", 0.3, 0, 10)}}};
}

std::string Choice(double share, double most_loss) {
  return ChooseChain(Curve(), share, most_loss).value().chain;
}

TEST(QualityLimitTest, TakesTheChainOfFewestBytesWithinTheLimit) {
  EXPECT_EQ(Choice(0.5, 0.05), "drop");
  EXPECT_EQ(Choice(0.5, 0.01), "smoe:alpha=0.3");
  EXPECT_EQ(Choice(0.5, 0.005), "smoe:alpha=0.1");
  EXPECT_EQ(Choice(0.25, 0.01), "smoe:alpha=0.1");
}

TEST(QualityLimitTest, StaysExactWhereNothingKeepsToTheLimitOrReadsLess) {
  EXPECT_EQ(Choice(0.5, 0.001), "exact");
  std::vector<MeasuredShare> curve = Curve();
  for (MeasuredChain& chain : curve[0].chains) chain.bytes = 100;
  const ChosenChain chosen = ChooseChain(curve, 0.5, 0.05).value();
  EXPECT_EQ(chosen.chain, "exact");
  EXPECT_EQ(chosen.loss_bound, 0);
  EXPECT_EQ(chosen.bytes_of_exact, 1);
}

TEST(QualityLimitTest, WhatIsNotSureIsNotWithinTheLimit) {
  std::vector<MeasuredShare> curve = Curve();
  curve[0].chains[1] = Chain("smoe:alpha=0.3", 0.008, 0.003, 60);
  EXPECT_EQ(ChooseChain(curve, 0.5, 0.01).value().chain, "smoe:alpha=0.1");
  EXPECT_EQ(ChooseChain(curve, 0.5, 0.012).value().chain, "smoe:alpha=0.3");
}

TEST(QualityLimitTest, WhatDivergesDoesNotPassForHavingMetATextThatItSuits) {
  std::vector<MeasuredShare> curve = Curve();
  curve[0].chains.push_back(Chain("random", -0.02, 0, 20));  // perplexity is even better
  curve[0].chains.back().kl = {.mean = 0.02, .least = 0.01, .most = 0.03};
  EXPECT_THAT(curve[0].chains.back().LossBound(), DoubleNear(std::expm1(0.03), 1e-12));
  EXPECT_THAT(curve[0].chains.back().LeastLoss(), DoubleNear(std::expm1(0.01), 1e-12));
  EXPECT_EQ(ChooseChain(curve, 0.5, 0.03).value().chain, "smoe:alpha=0.3");
  EXPECT_EQ(ChooseChain(curve, 0.5, 0.031).value().chain, "random");
}

TEST(QualityLimitTest, BetweenTwoMeasuredSharesALimitHoldsAtBoth) {
  EXPECT_EQ(Choice(0.45, 0.01), "smoe:alpha=0.1");  // 0.3 loses 1.5 % at a quarter
  EXPECT_EQ(Choice(0.45, 0.05), "smoe:alpha=0.3");
  const ChosenChain chosen = ChooseChain(Curve(), 0.45, 0.05).value();
  EXPECT_THAT(chosen.loss_bound, DoubleNear(0.015, 1e-9));
  EXPECT_EQ(chosen.measured_share, 0.5);
  EXPECT_EQ(chosen.bytes_of_exact, 0.6);
  EXPECT_EQ(ChooseChain(Curve(), 0.3, 0.05).value().bytes_of_exact, 0.45);
}

TEST(QualityLimitTest, AboveTheLargestShareItsFiguresHoldAndBelowTheSmallestNone) {
  EXPECT_EQ(Choice(0.9, 0.01), "smoe:alpha=0.3");
  const auto below = ChooseChain(Curve(), 0.2, 0.01);
  ASSERT_FALSE(below.ok());
  EXPECT_THAT(below.status().message(), HasSubstr("20.0 % of the experts"));
  EXPECT_FALSE(ChooseChain({}, 0.5, 0.01).ok());
}

TEST(QualityLimitTest, AChainThatOneOfTheSharesLacksIsNotTaken) {
  std::vector<MeasuredShare> curve = Curve();
  curve[1].chains.erase(curve[1].chains.begin() + 1);
  EXPECT_EQ(ChooseChain(curve, 0.45, 0.05).value().chain, "smoe:alpha=0.1");
}

TEST(QualityLimitTest, ALatencyTargetTakesTheLeastAlphaOfTheCurveFittedToWhatWasMeasured) {
  // 100 ms less 100 ms for each unit of alpha; other chains do not count.
  std::vector<MeasuredShare> curve = Curve();
  curve[0].exact.seconds = 0.1;
  curve[0].chains = {Chain("smoe:alpha=0.2", 0, 0, 1), Chain("smoe:alpha=0.4", 0, 0, 1),
                     Chain("drop", 0, 0, 1), Chain("smoe:alpha=0.3+drop", 0, 0, 1)};
  curve[0].chains[0].seconds = 0.08;
  curve[0].chains[1].seconds = 0.06;
  const AlphaChoice found = ChooseAlpha(curve, 0.52, 0.07).value();
  EXPECT_TRUE(found.meets_target);
  EXPECT_THAT(found.alpha, DoubleNear(0.3, 1e-3));
  EXPECT_THAT(found.seconds, DoubleNear(0.07, 1e-4));
  EXPECT_EQ(ChooseAlpha(curve, 0.5, 0.2).value().alpha, 0);
  EXPECT_FALSE(ChooseAlpha(curve, 0.5, 0.01).value().meets_target);
  EXPECT_THAT(ChooseAlpha(curve, 0.4, 0.07).status().message(), HasSubstr("about 40.0 %"));
  // Two points do not carry a curve.
  curve[1].chains.erase(curve[1].chains.begin());
  EXPECT_FALSE(ChooseAlpha(curve, 0.25, 0.07).ok());
}

TEST(QualityLimitTest, ReadsTheDial) {
  EXPECT_EQ(ParseQuality("exact").value(), Lossiness(Exact{}));
  EXPECT_EQ(ParseQuality("balanced").value(), Lossiness(LossLimit{kBalancedLoss}));
  EXPECT_EQ(ParseQuality("fast").value(), Lossiness(LossLimit{kFastLoss}));
  EXPECT_EQ(ParseQuality("2.5%").value(), Lossiness(LossLimit{0.025}));
  EXPECT_EQ(ToString(LossLimit{0.025}), "2.5%");
  for (const std::string_view wrong : {"", "good", "1", "%", "0%", "-1%", "nan%", "101%", "1%%"}) {
    EXPECT_THAT(ParseQuality(wrong).status().message(), HasSubstr("expected exact, balanced, fast"))
        << wrong;
  }
}

}  // namespace
}  // namespace troupe
