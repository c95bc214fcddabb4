#include "expert/gate/group_loss.h"

namespace troupe {
namespace {

// Row by row, in place.
void Softmax(Eigen::MatrixXd& logits) {
  logits.colwise() -= Eigen::VectorXd(logits.rowwise().maxCoeff());
  logits = logits.array().exp();
  logits.array().colwise() /= Eigen::ArrayXd(logits.rowwise().sum().array());
}

}  // namespace

Eigen::MatrixXd GroupWeights::Say(const Eigen::MatrixXd& inputs) const {
  Eigen::MatrixXd said = inputs * w;
  said.rowwise() += bias.transpose();
  Softmax(said);
  return said;
}

double MeanGroupDivergence(const Eigen::MatrixXd& shares, const Eigen::MatrixXd& said) {
  const auto p = shares.array().max(kLeastGroupShare), q = said.array().max(kLeastGroupShare);
  return (p * (p.log() - q.log())).sum() / static_cast<double>(shares.rows());
}

GroupLoss LossOfGroups(const Eigen::MatrixXd& inputs, const Eigen::MatrixXd& shares, double ridge,
                       const GroupWeights& weights) {
  const Eigen::MatrixXd said = weights.Say(inputs), excess = said - shares;
  return {.loss = MeanGroupDivergence(shares, said) + 0.5 * ridge * weights.w.squaredNorm(),
          .gradient = {.w = inputs.transpose() * excess / static_cast<double>(inputs.rows()) +
                            ridge * weights.w,
                       .bias = excess.colwise().mean().transpose()}};
}

}  // namespace troupe
