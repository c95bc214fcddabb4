#include "expert/gate/group_distillation.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "expert/gate/group_loss.h"

namespace troupe {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kLeastProgress = 1e-3;  // of the divergence, for a step to count as one that helps
constexpr std::uint32_t kMostIdle = 3;   // steps that do not help, before the last one
constexpr double kLeastDeviation = 1e-6;  // of a column that says anything

using Rows =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

MatrixXd InputsOf(const GateSamples& samples) {
  return Rows(samples.inputs.data(), static_cast<Eigen::Index>(samples.tokens()),
              static_cast<Eigen::Index>(samples.width))
      .cast<double>();
}

MatrixXd SharesOf(const GateSamples& samples, const ExpertGroups& groups) {
  MatrixXd shares(samples.tokens(), groups.size());
  for (std::size_t t = 0; t < samples.tokens(); ++t) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      double share = 0;
      for (const std::uint32_t e : groups[g]) share += samples.Scores(t)[e];
      shares(static_cast<Eigen::Index>(t), static_cast<Eigen::Index>(g)) = share;
    }
  }
  return shares;
}

// Each column's mean becomes 0 and its deviation 1, so that one ridge suits all of them, whatever
// channels of the model are massive.
struct Standard {
  explicit Standard(const MatrixXd& inputs) : mean(inputs.colwise().mean().transpose()) {
    const auto tokens = static_cast<double>(inputs.rows());
    scale = ((inputs.rowwise() - mean.transpose()).array().square().colwise().sum() / tokens)
                .sqrt()
                .transpose();
    for (double& s : scale) s = s > kLeastDeviation ? 1 / s : 0;
  }
  void Apply(MatrixXd& inputs) const {
    inputs.rowwise() -= mean.transpose();
    inputs.array().rowwise() *= scale.transpose().array();
  }

  VectorXd mean, scale;
};

struct Best {
  GroupWeights weights;
  double divergence = std::numeric_limits<double>::infinity();  // of what is chosen by
  double ridge = 0;
  std::uint32_t steps = 0;
  std::vector<double> losses;
};

struct Problem {
  const MatrixXd &inputs, &shares;                // learned from
  const MatrixXd &chosen_inputs, &chosen_shares;  // chosen by
  const MatrixXd& moments;
};

void Learn(const Problem& problem, double ridge, std::uint32_t most_steps, Best& best) {
  const Eigen::Index width = problem.inputs.cols();
  const Eigen::LLT<MatrixXd> bound(0.5 * problem.moments +
                                   ridge * MatrixXd::Identity(width, width));
  // Before any step it says what groups have on average.
  GroupWeights now{
      .w = MatrixXd::Zero(width, problem.shares.cols()),
      .bias = problem.shares.colwise().mean().transpose().array().max(kLeastGroupShare).log()};
  std::vector<double> losses;
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t step = 0, idle = 0; idle < kMostIdle; ++step) {
    const auto [loss, gradient] = LossOfGroups(problem.inputs, problem.shares, ridge, now);
    losses.push_back(loss);
    const double divergence =
        MeanGroupDivergence(problem.chosen_shares, now.Say(problem.chosen_inputs));
    idle = divergence < least * (1 - kLeastProgress) ? 0 : idle + 1;
    least = std::min(least, divergence);
    if (divergence < best.divergence) {
      best = {.weights = now, .divergence = divergence, .ridge = ridge, .steps = step};
    }
    if (step == most_steps) break;
    now.w -= bound.solve(gradient.w);
    now.bias -= 2 * gradient.bias;
  }
  if (best.ridge == ridge) best.losses = std::move(losses);
}

}  // namespace

SampleParts Divide(const GateSamples& samples) {
  TROUPE_CHECK(samples.tokens() >= kLeastSamples);
  const std::size_t learn = samples.tokens() * 3 / 5, choose = samples.tokens() / 5;
  return {.learn = samples.Part(0, learn),
          .choose = samples.Part(learn, choose),
          .report = samples.Part(learn + choose, samples.tokens() - learn - choose)};
}

DistilledGate DistillGroups(const GateSamples& learn, const GateSamples& choose,
                            const ExpertGroups& groups, const DistillOptions& options) {
  TROUPE_CHECK(learn.tokens() > 0 && choose.tokens() > 0 && !options.ridges.empty());
  MatrixXd inputs = InputsOf(learn), chosen_inputs = InputsOf(choose);
  const Standard standard(inputs);
  standard.Apply(inputs);
  standard.Apply(chosen_inputs);
  const MatrixXd shares = SharesOf(learn, groups), chosen_shares = SharesOf(choose, groups);
  const MatrixXd moments = inputs.transpose() * inputs / static_cast<double>(inputs.rows());
  const Problem problem{.inputs = inputs,
                        .shares = shares,
                        .chosen_inputs = chosen_inputs,
                        .chosen_shares = chosen_shares,
                        .moments = moments};
  Best best;
  for (const double ridge : options.ridges) Learn(problem, ridge, options.most_steps, best);

  DistilledGate gate{.ridge = best.ridge, .steps = best.steps, .losses = std::move(best.losses)};
  const MatrixXd w = best.weights.w.array().colwise() * standard.scale.array();
  const VectorXd bias = best.weights.bias - w.transpose() * standard.mean;
  for (Eigen::Index g = 0; g < w.cols(); ++g) {
    for (Eigen::Index c = 0; c < w.rows(); ++c) gate.weights.push_back(static_cast<float>(w(c, g)));
    gate.bias.push_back(static_cast<float>(bias(g)));
  }
  return gate;
}

Bytes DistillationBytes(std::size_t tokens, std::size_t width, std::size_t groups) {
  // Inputs and a copy while they are standardised; the moments, their bound and its factor; weights
  // now, best and in a step; shares, what is said and what is missing of them.
  return Bytes(sizeof(double) *
               (2 * tokens * width + 4 * width * width + 5 * width * groups + 6 * tokens * groups));
}

}  // namespace troupe
