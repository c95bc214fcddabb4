// The next layers' gates asked early, as Fate asks the next one's, and corrected by what such
// forecasts were seen to miss (gate_correction.h). Corrected forecasts are good enough to look
// further than one layer ahead, which is what loads need that take longer than a layer.
#pragma once

#include <algorithm>
#include <vector>

#include "expert/forecast/gate_correction.h"
#include "expert/forecast/gate_guesses.h"
#include "expert/forecast/predictor.h"

namespace troupe {

class LookaheadGate : public Predictor {
 public:
  static Bytes BytesFor(ExpertGrid grid) {
    return GateCorrection::BytesFor(grid, LayersAhead(grid));
  }

  LookaheadGate(ExpertGrid grid, std::uint32_t experts_per_token,
                std::span<const LearnedForecast> learned = {})
      : experts_per_token_(experts_per_token),
        layers_ahead_(LayersAhead(grid)),
        correction_(grid, experts_per_token, layers_ahead_) {
    correction_.BeginWith(learned);
  }

  std::string_view name() const override { return "lookahead"; }
  std::uint32_t forecast_layers() const override { return layers_ahead_; }
  void OnChosen(const LayerChoices&) override {}
  void OnGateScores(std::uint32_t layer, const GateScores& said) override {
    correction_.Learn(layer, said);
  }
  std::vector<Guess> Predict(std::uint32_t layer, std::uint32_t ahead,
                             const GateScores& forecast) override {
    return GuessesFrom(Corrected(layer, ahead, forecast), experts_per_token_);
  }

  // The same for each token of its own.
  std::vector<std::vector<Guess>> PredictRows(std::uint32_t layer, std::uint32_t ahead,
                                              const GateScores& forecast) {
    const GateScores corrected = Corrected(layer, ahead, forecast);
    std::vector<std::vector<Guess>> rows;
    for (std::size_t r = 0; r < corrected.rows(); ++r) {
      rows.push_back(GuessesFrom({.experts = forecast.experts, .scores = corrected.Row(r)},
                                 experts_per_token_));
    }
    return rows;
  }

  const GateCorrection& correction() const { return correction_; }

  GateScores Corrected(std::uint32_t layer, std::uint32_t ahead,
                       const GateScores& forecast) override {
    corrected_.assign(forecast.scores.begin(), forecast.scores.end());
    correction_.Correct(layer, ahead, corrected_);
    return {.experts = forecast.experts, .scores = corrected_};
  }

 protected:
  std::uint32_t experts_per_token() const { return experts_per_token_; }

 private:
  // The tables grow with the square of the experts: models with very many look less far.
  static std::uint32_t LayersAhead(ExpertGrid grid) {
    constexpr Bytes kMost = 64_MiB;
    std::uint32_t layers = kMostLayersAhead;
    while (layers > 1 && GateCorrection::BytesFor(grid, layers) > kMost) --layers;
    return layers;
  }

  std::uint32_t experts_per_token_;
  std::uint32_t layers_ahead_;
  GateCorrection correction_;
  std::vector<float> corrected_;
};

}  // namespace troupe
