// Fate's prediction: neighbouring layers' gate inputs are alike, so the next layer's gate, given
// this layer's gate input, nearly says what it will say. Beyond each token's top-k it guesses every
// expert whose probability exceeds the 75th percentile of the row; with many tokens, by popularity.
#pragma once

#include <vector>

#include "expert/predictor.h"

namespace troupe {

class CrossLayerGate final : public Predictor {
 public:
  explicit CrossLayerGate(ExpertGrid grid) : grid_(grid) {}

  std::string_view name() const override { return "gate"; }
  bool wants_forecast() const override { return true; }
  void Chose(std::uint32_t, std::span<const ExpertDemand>) override {}
  std::vector<Guess> Predict(std::uint32_t layer, const GateForecast& forecast) override;

 private:
  ExpertGrid grid_;
};

}  // namespace troupe
