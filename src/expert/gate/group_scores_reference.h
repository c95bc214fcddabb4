// What a group gate says of one token, in double and step by step: the truth that the fast one
// (model/group_gate.h) is held to, and what reports of its agreement count with.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "expert/gate/group_gate.h"

namespace troupe {

// softmax(W x + b): what each group has of the token's weight.
inline std::vector<double> GroupSharesReference(const GroupGateLayer& gate,
                                                std::span<const float> input) {
  std::vector<double> shares(gate.bias.begin(), gate.bias.end());
  for (std::size_t g = 0; g < shares.size(); ++g) {
    for (std::size_t c = 0; c < input.size(); ++c) {
      shares[g] += double{gate.weights[g * input.size() + c]} * input[c];
    }
  }
  const double most = *std::ranges::max_element(shares);
  for (double& share : shares) share = std::exp(share - most);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

// The best ones, best first, ties to the lowest number.
inline std::vector<std::uint32_t> BestReference(std::span<const double> values, std::size_t count) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

struct GroupScores {
  std::vector<double> scores;         // of all experts; those not looked at share evenly
  std::vector<std::uint32_t> looked;  // groups, best first
};

// `router`: the exact router's scores of all experts, of which only those looked at are used:
// within groups they decide as the router's own rows do.
inline GroupScores GroupScoresReference(const ExpertGroups& groups, const GateChoice& choice,
                                        std::span<const double> shares,
                                        std::span<const float> router) {
  GroupScores found{.scores = std::vector<double>(router.size()),
                    .looked = BestReference(shares, choice.looked)};
  double share_looked = 0, sum_looked = 0;
  for (const std::uint32_t g : found.looked) {
    share_looked += shares[g];
    for (const std::uint32_t e : groups[g]) sum_looked += router[e];
  }
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    const auto size = static_cast<double>(groups[g].size());
    double sum = 0;
    for (const std::uint32_t e : groups[g]) sum += router[e];
    const bool looked = std::ranges::find(found.looked, g) != found.looked.end();
    for (const std::uint32_t e : groups[g]) {
      if (!looked) {
        found.scores[e] = shares[g] / size;
      } else if (choice.fusion == GroupFusion::kJoint) {
        found.scores[e] = share_looked * router[e] / sum_looked;
      } else {
        found.scores[e] = shares[g] * router[e] / sum;
      }
    }
  }
  return found;
}

// The best of those looked at, best first; fewer where no more were looked at.
inline std::vector<std::uint32_t> ChosenReference(const ExpertGroups& groups,
                                                  const GroupScores& found, std::size_t top_k) {
  std::vector<double> keys(found.scores.size(), -1);
  std::size_t candidates = 0;
  for (const std::uint32_t g : found.looked) {
    for (const std::uint32_t e : groups[g]) keys[e] = found.scores[e];
    candidates += groups[g].size();
  }
  return BestReference(keys, std::min(top_k, candidates));
}

}  // namespace troupe
