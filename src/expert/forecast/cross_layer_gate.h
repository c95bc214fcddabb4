// Fate's prediction: neighbouring layers' gate inputs are alike, so the next layer's gate, given
// the stream as it is now, nearly says what it will say. Guesses by the percentile rule
// (gate_guesses.h) of the next layer alone, and learns nothing.
#pragma once

#include <vector>

#include "expert/forecast/gate_guesses.h"
#include "expert/forecast/predictor.h"

namespace troupe {

class CrossLayerGate final : public Predictor {
 public:
  explicit CrossLayerGate(std::uint32_t experts_per_token)
      : experts_per_token_(experts_per_token) {}

  std::string_view name() const override { return "gate"; }
  std::uint32_t forecast_layers() const override { return 1; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores& forecast) override {
    return GuessesFrom(forecast, experts_per_token_);
  }

 private:
  std::uint32_t experts_per_token_;
};

}  // namespace troupe
