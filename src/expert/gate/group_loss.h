// What the steps of distilling a group gate go down: how far what a gate says of inputs is from the
// router's shares of groups, with a penalty on weights; and its gradient. Pure. For
// group_distillation.cc and its tests: what includes this needs Eigen.
#pragma once

#include <Eigen/Core>

namespace troupe {

struct GroupWeights {
  Eigen::MatrixXd w;     // [column of inputs][group]
  Eigen::VectorXd bias;  // [group]

  // Shares of groups, a row for each row of inputs.
  Eigen::MatrixXd Say(const Eigen::MatrixXd& inputs) const;
};

inline constexpr double kLeastGroupShare = 1e-12;  // where its logarithm is taken

// Of what is said from the shares that are true, in nats a row.
double MeanGroupDivergence(const Eigen::MatrixXd& shares, const Eigen::MatrixXd& said);

struct GroupLoss {
  double loss = 0;  // mean divergence + ridge / 2 * the weights' squares; the bias is free
  GroupWeights gradient;
};

// REQUIRES: each row of shares adds up to 1.
GroupLoss LossOfGroups(const Eigen::MatrixXd& inputs, const Eigen::MatrixXd& shares, double ridge,
                       const GroupWeights& weights);

}  // namespace troupe
