// A router and inputs whose group shares are known, for tests of what is learned from them.
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "expert/gate/group_distillation.h"
#include "expert/gate/group_scores_reference.h"

namespace troupe {

// Group shares are a softmax of a matrix and a bias; within a group scores are random. Inputs have
// columns of very different sizes, as models' streams do.
class PlantedGate {
 public:
  PlantedGate(std::size_t tokens, std::uint32_t width, const ExpertGroups& groups, Rng& rng) {
    gate.groups = groups;
    for (std::size_t i = 0; i < groups.size() * width; ++i) {
      gate.weights.push_back(static_cast<float>(rng.Normal()));
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      gate.bias.push_back(static_cast<float>(rng.Normal()));
    }
    for (const auto& group : groups) experts_ += group.size();
    for (std::size_t t = 0; t < tokens; ++t) AddToken(width, rng);
    samples = {.width = width, .experts = experts_, .inputs = inputs_, .scores = scores_};
  }
  PlantedGate(const PlantedGate&) = delete;
  PlantedGate& operator=(const PlantedGate&) = delete;

  GroupGateLayer gate;
  GateSamples samples;

 private:
  void AddToken(std::uint32_t width, Rng& rng) {
    std::vector<float> input(width);
    for (std::uint32_t c = 0; c < width; ++c) {
      const double size = c == 0 ? 30.0 : 1.0;
      input[c] = static_cast<float>(size * (0.5 + rng.Normal()));
      // The massive column weighs no more in the gate than others do.
    }
    if (inputs_.empty()) {
      for (std::size_t g = 0; g < gate.bias.size(); ++g) gate.weights[g * width] /= 30;
    }
    const std::vector<double> shares = GroupSharesReference(gate, input);
    std::vector<float> scores(experts_);
    for (std::size_t g = 0; g < gate.groups.size(); ++g) {
      std::vector<double> parts;
      for (std::size_t i = 0; i < gate.groups[g].size(); ++i) {
        parts.push_back(std::exp(2 * rng.Normal()));
      }
      const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        scores[gate.groups[g][i]] = static_cast<float>(shares[g] * parts[i] / sum);
      }
    }
    inputs_.insert(inputs_.end(), input.begin(), input.end());
    scores_.insert(scores_.end(), scores.begin(), scores.end());
  }

  std::size_t experts_ = 0;
  std::vector<float> inputs_, scores_;
};

}  // namespace troupe
