// Learns a group gate from what a router said of recorded inputs: for each token, how much of its
// weight lies in each group. With the router's own rows within groups, the divergence of the
// router's scores from the group gate's is the divergence of these shares, so nothing else has to
// be learned. Pure; Eigen does the algebra.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/gate/group_gate.h"

namespace troupe {

// Of one layer, token after token.
struct GateSamples {
  std::size_t width = 0, experts = 0;
  std::span<const float> inputs;  // [token][width], as the router reads them
  std::span<const float> scores;  // [token][experts], the softmax of the router's logits

  std::size_t tokens() const { return scores.size() / experts; }
  std::span<const float> Input(std::size_t token) const {
    return inputs.subspan(token * width, width);
  }
  std::span<const float> Scores(std::size_t token) const {
    return scores.subspan(token * experts, experts);
  }
  GateSamples Part(std::size_t first, std::size_t count) const {
    return {.width = width,
            .experts = experts,
            .inputs = inputs.subspan(first * width, count * width),
            .scores = scores.subspan(first * experts, count * experts)};
  }
};

// A text's tokens in their order: weights are learned from the first part, ridge and number of
// steps chosen by the second. What is reported is measured on the third.
struct SampleParts {
  GateSamples learn, choose, report;
};
SampleParts Divide(const GateSamples& samples);
inline constexpr std::size_t kLeastSamples = 10;  // so that each part has some

struct DistillOptions {
  std::vector<double> ridges = {1e-4, 1e-3, 1e-2, 1e-1, 1};  // of standardised inputs
  std::uint32_t most_steps = 100;
};

struct DistilledGate {
  std::vector<float> weights, bias;  // as GroupGateLayer's
  double ridge = 0;
  std::uint32_t steps = 0;
  // Of each step with that ridge, the first before any: mean divergence and penalty on what was
  // learned from. Never rises.
  std::vector<double> losses;
};

// Multinomial logistic regression on shares. Each step solves with one factor of the inputs' second
// moments, which bound the curvature of any softmax (Boehning 1992): the first step is a ridge
// regression in closed form, and none can make the loss worse.
DistilledGate DistillGroups(const GateSamples& learn, const GateSamples& choose,
                            const ExpertGroups& groups, const DistillOptions& options = {});

// Most memory that it takes at a time.
Bytes DistillationBytes(std::size_t tokens, std::size_t width, std::size_t groups);

}  // namespace troupe
