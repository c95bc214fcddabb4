#include "expert/gate/group_agreement.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "expert/gate/group_scores_reference.h"

namespace troupe {
namespace {

std::vector<double> SharesOf(std::span<const float> scores, const ExpertGroups& groups) {
  std::vector<double> shares;
  for (const std::vector<std::uint32_t>& group : groups) {
    double& share = shares.emplace_back(0);
    for (const std::uint32_t e : group) share += scores[e];
  }
  return shares;
}

double Divergence(const std::vector<double>& shares, const std::vector<double>& said) {
  double sum = 0;
  for (std::size_t g = 0; g < shares.size(); ++g) {
    if (shares[g] > 0) sum += shares[g] * std::log(shares[g] / said[g]);
  }
  return sum;
}

double ShareFound(const std::vector<std::uint32_t>& wanted,
                  const std::vector<std::uint32_t>& found) {
  const auto hits = std::ranges::count_if(
      wanted, [&](std::uint32_t e) { return std::ranges::find(found, e) != found.end(); });
  return static_cast<double>(hits) / static_cast<double>(wanted.size());
}

}  // namespace

GateAgreement MeasureAgreement(const GateSamples& samples, const GroupGateLayer& gate,
                               std::uint32_t top_k) {
  const auto tokens = static_cast<double>(samples.tokens());
  TROUPE_CHECK(samples.tokens() > 0 && top_k <= samples.experts);
  GateAgreement agreement;
  agreement.by_looked.resize(gate.groups.size());
  std::vector<double> mean(gate.groups.size());
  for (std::size_t t = 0; t < samples.tokens(); ++t) {
    const std::vector<double> shares = SharesOf(samples.Scores(t), gate.groups);
    for (std::size_t g = 0; g < mean.size(); ++g) mean[g] += shares[g] / tokens;
  }
  for (std::size_t t = 0; t < samples.tokens(); ++t) {
    const std::span<const float> scores = samples.Scores(t);
    const std::vector<double> shares = SharesOf(scores, gate.groups);
    const std::vector<double> said = GroupSharesReference(gate, samples.Input(t));
    agreement.divergence += Divergence(shares, said);
    agreement.of_nothing += Divergence(shares, mean);
    const std::vector<std::uint32_t> wanted =
        BestReference(std::vector<double>(scores.begin(), scores.end()), top_k);
    for (std::uint32_t looked = 1; looked <= gate.groups.size(); ++looked) {
      const auto found = [&](GroupFusion fusion, const std::vector<double>& by) {
        const GateChoice choice{.by_groups = true, .looked = looked, .fusion = fusion};
        const GroupScores scored = GroupScoresReference(gate.groups, choice, by, scores);
        return ShareFound(wanted, ChosenReference(gate.groups, scored, top_k));
      };
      LookedAgreement& sums = agreement.by_looked[looked - 1];
      sums.joint += found(GroupFusion::kJoint, said);
      sums.product += found(GroupFusion::kProduct, said);
      sums.best_groups += found(GroupFusion::kJoint, shares);
    }
  }
  agreement.divergence /= tokens;
  agreement.of_nothing /= tokens;
  for (LookedAgreement& sums : agreement.by_looked) {
    sums.joint /= tokens;
    sums.product /= tokens;
    sums.best_groups /= tokens;
  }
  return agreement;
}

}  // namespace troupe
