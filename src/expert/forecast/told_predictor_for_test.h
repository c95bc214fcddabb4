// For tests: a predictor that guesses what it is told to.
#pragma once

#include <string_view>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

class Told final : public Predictor {
 public:
  explicit Told(std::vector<Guess>& guesses) : guesses_(guesses) {}
  std::string_view name() const override { return "told"; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores&) override {
    return guesses_;
  }

 private:
  std::vector<Guess>& guesses_;
};

}  // namespace troupe
