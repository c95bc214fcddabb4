#include "expert/substitution/alpha_for_latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace troupe {
namespace {

using testing::HasSubstr;

std::vector<MeasuredAlpha> Measured(const std::vector<double>& polynomial, double noise = 0) {
  Rng rng(3);
  std::vector<MeasuredAlpha> points;
  for (int i = 0; i <= 12; ++i) {
    const double alpha = 0.05 * i;
    points.push_back({alpha, PolynomialAt(polynomial, alpha) + noise * rng.Normal()});
  }
  return points;
}

TEST(FitPolynomialTest, FindsThePolynomialThatMadeThePoints) {
  for (const std::vector<double>& made :
       {std::vector<double>{0.1}, std::vector<double>{0.1, -0.05},
        std::vector<double>{0.1, -0.05, 0.02}, std::vector<double>{0.1, -0.2, 0.3, -0.1}}) {
    const auto fit =
        FitPolynomial(Measured(made), static_cast<std::uint32_t>(made.size() - 1)).value();
    for (std::size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(fit[i], made[i], 1e-9);
  }
}

TEST(FitPolynomialTest, RefusesWhatDoesNotTellAPolynomial) {
  const std::vector<MeasuredAlpha> two = {{0, 1}, {0.1, 0.9}, {0.1, 0.8}};
  EXPECT_THAT(FitPolynomial(two, 2).status().message(),
              HasSubstr("2 different alphas, at least 3"));
  EXPECT_THAT(FitPolynomial(two, 4).status().message(), HasSubstr("degree 4"));
  const std::vector<MeasuredAlpha> broken = {{0, 1}, {0.1, 0.0 / 0.0}};
  EXPECT_THAT(FitPolynomial(broken, 1).status().message(), HasSubstr("numbers expected"));
}

TEST(ChooseAlphaTest, TakesTheSmallestThatMeetsTheTarget) {
  const auto line = Measured({0.1, -0.05});  // 0.085 at 0.3
  const AlphaChoice choice = ChooseAlpha(line, 0.085, 1).value();
  EXPECT_TRUE(choice.meets_target);
  EXPECT_NEAR(choice.alpha, 0.3, 0.001);
  EXPECT_LE(choice.seconds, 0.085);
}

TEST(ChooseAlphaTest, IsExactWhereThatIsFastEnough) {
  EXPECT_EQ(ChooseAlpha(Measured({0.1, -0.05}), 0.2).value().alpha, 0);
}

TEST(ChooseAlphaTest, SaysWhenTheTargetIsOutOfReachAndComesNearest) {
  const AlphaChoice choice = ChooseAlpha(Measured({0.1, -0.2, 0.25}), 0.01).value();
  EXPECT_FALSE(choice.meets_target);
  EXPECT_NEAR(choice.alpha, 0.4, 0.01);  // the fit's least
}

TEST(ChooseAlphaTest, NoiseMovesItLittle) {
  const AlphaChoice choice = ChooseAlpha(Measured({0.1, -0.05}, 0.0005), 0.085, 1).value();
  EXPECT_NEAR(choice.alpha, 0.3, 0.03);
}

}  // namespace
}  // namespace troupe
