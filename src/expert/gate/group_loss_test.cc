#include "expert/gate/group_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Of sums of a hundred terms below ten, each rounded ten times at most.
constexpr double kRounding = 1e4 * std::numeric_limits<double>::epsilon();

// As the header says it, in plain loops.
double LossByLoops(const Eigen::MatrixXd& inputs, const Eigen::MatrixXd& shares, double ridge,
                   const GroupWeights& weights) {
  double sum = 0, squares = 0;
  for (Eigen::Index t = 0; t < inputs.rows(); ++t) {
    std::vector<double> logits;
    for (Eigen::Index g = 0; g < shares.cols(); ++g) {
      double logit = weights.bias(g);
      for (Eigen::Index c = 0; c < inputs.cols(); ++c) logit += inputs(t, c) * weights.w(c, g);
      logits.push_back(logit);
    }
    const double most = std::ranges::max(logits);
    double all = 0;
    for (const double logit : logits) all += std::exp(logit - most);
    for (Eigen::Index g = 0; g < shares.cols(); ++g) {
      const double said = logits[static_cast<std::size_t>(g)] - most - std::log(all);
      sum += shares(t, g) * (std::log(shares(t, g)) - said);
    }
  }
  for (Eigen::Index g = 0; g < shares.cols(); ++g) {
    for (Eigen::Index c = 0; c < inputs.cols(); ++c) squares += weights.w(c, g) * weights.w(c, g);
  }
  return sum / static_cast<double>(inputs.rows()) + ridge / 2 * squares;
}

struct LossCase {
  LossCase(Rng& rng, double penalty) : ridge(penalty) {
    const auto tokens = static_cast<Eigen::Index>(1 + rng.Below(20));
    const auto width = static_cast<Eigen::Index>(1 + rng.Below(6));
    const auto groups = static_cast<Eigen::Index>(2 + rng.Below(4));
    const auto random = [&rng](Eigen::Index rows, Eigen::Index columns) {
      return Eigen::MatrixXd(
          Eigen::MatrixXd::NullaryExpr(rows, columns, [&rng] { return rng.Normal(); }));
    };
    inputs = random(tokens, width);
    shares = (2 * random(tokens, groups)).array().exp();
    shares.array().colwise() /= Eigen::ArrayXd(shares.rowwise().sum().array());
    weights = {.w = random(width, groups), .bias = random(groups, 1)};
  }
  GroupLoss Loss() const { return LossOfGroups(inputs, shares, ridge, weights); }

  double ridge;
  Eigen::MatrixXd inputs, shares;
  GroupWeights weights;
};

// A difference over 2h is off by h^2 / 6 times a third derivative. That of a logarithm of a sum of
// exponents is at most 1 / (6 sqrt 3) < 0.1 in one of them, which a weight moves by an input. Each
// loss is rounded by some eps of the terms that it is made of.
double ToleranceOf(const LossCase& c, double h) {
  const double largest = std::max(1.0, c.inputs.cwiseAbs().maxCoeff());
  const double terms = c.Loss().loss + c.weights.bias.cwiseAbs().maxCoeff() +
                       (c.inputs.cwiseAbs() * c.weights.w.cwiseAbs()).maxCoeff();
  return h * h / 6 * 0.1 * std::pow(largest, 3) +
         100 * std::numeric_limits<double>::epsilon() * (1 + terms) / h;
}

// Calls check(what it is by differences, what the gradient says) for each number of the weights.
void ForNumbers(LossCase c, double h, const std::function<void(double, double)>& check) {
  const GroupWeights gradient = c.Loss().gradient;
  const auto difference = [&](double& number) {
    const double at = number;
    number = at + h;
    const double above = LossByLoops(c.inputs, c.shares, c.ridge, c.weights);
    number = at - h;
    const double below = LossByLoops(c.inputs, c.shares, c.ridge, c.weights);
    number = at;
    return (above - below) / (2 * h);
  };
  for (Eigen::Index g = 0; g < c.weights.bias.size(); ++g) {
    check(difference(c.weights.bias(g)), gradient.bias(g));
    for (Eigen::Index i = 0; i < c.weights.w.rows(); ++i) {
      check(difference(c.weights.w(i, g)), gradient.w(i, g));
    }
  }
}

TEST(GroupLoss, IsWhatItsDefinitionSays) {
  Rng rng(TestSeed());
  for (int round = 0; round < 100; ++round) {
    const LossCase c(rng, round % 2 == 0 ? 0 : 0.3);
    EXPECT_NEAR(c.Loss().loss, LossByLoops(c.inputs, c.shares, c.ridge, c.weights), kRounding);
  }
}

TEST(GroupLoss, ItsGradientIsThatOfDifferences) {
  Rng rng(TestSeed());
  constexpr double kStep = 1e-5;
  for (int round = 0; round < 200; ++round) {
    const LossCase c(rng, std::vector<double>{0, 0.01, 1}[static_cast<std::size_t>(round % 3)]);
    const double tolerance = ToleranceOf(c, kStep);
    ForNumbers(c, kStep, [&](double by_differences, double gradient) {
      EXPECT_NEAR(gradient, by_differences, tolerance) << "round " << round;
    });
  }
}

TEST(GroupLoss, DifferencesTellAGradientThatForgetsThePenalty) {
  Rng rng(TestSeed());
  LossCase c(rng, 0.1);
  const GroupWeights without = LossOfGroups(c.inputs, c.shares, 0, c.weights).gradient;
  const double off = (c.Loss().gradient.w - without.w).cwiseAbs().maxCoeff();
  EXPECT_GT(off, 100 * ToleranceOf(c, 1e-5));
}

TEST(GroupLoss, VanishesWhereWhatIsSaidIsWhatIsTrue) {
  Rng rng(TestSeed());
  LossCase c(rng, 0);
  c.shares = c.weights.Say(c.inputs);
  const GroupLoss at = c.Loss();
  EXPECT_NEAR(at.loss, 0, kRounding);
  EXPECT_LT(at.gradient.w.cwiseAbs().maxCoeff(), kRounding);
  EXPECT_LT(at.gradient.bias.cwiseAbs().maxCoeff(), kRounding);
}

}  // namespace
}  // namespace troupe
