// Guesses that a layer will choose what it chose for the token before.
#pragma once

#include <algorithm>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

class PreviousToken final : public Predictor {
 public:
  explicit PreviousToken(ExpertGrid grid) : last_(grid.layers) {}

  std::string_view name() const override { return "previous"; }
  void Chose(std::uint32_t layer, std::span<const ExpertDemand> chosen) override {
    last_[layer].assign(chosen.begin(), chosen.end());
  }
  std::vector<Guess> Predict(std::uint32_t layer, std::uint32_t, const GateScores&) override {
    std::vector<Guess> guesses;
    for (const ExpertDemand& chosen : last_[layer]) {
      guesses.push_back(
          {.expert = chosen.expert, .weight = static_cast<float>(chosen.tokens), .expected = true});
    }
    std::ranges::stable_sort(guesses,
                             [](const Guess& a, const Guess& b) { return a.weight > b.weight; });
    return guesses;
  }

 private:
  std::vector<std::vector<ExpertDemand>> last_;
};

}  // namespace troupe
