// SMoE's prediction: the next layer's gate, given the stream with the answers of the shared expert
// and of the experts in memory, behind the next layer's attention. Where missing experts are
// substituted it guesses those of top score alone (top_score_guesses.h), as the paper does;
// elsewhere as the cross-layer gate does. It learns nothing. The model makes the forecast
// (model/look_ahead.cc).
#pragma once

#include <utility>
#include <vector>

#include "expert/forecast/gate_guesses.h"
#include "expert/forecast/predictor.h"
#include "expert/forecast/top_score_guesses.h"

namespace troupe {

class SmoeGate final : public Predictor {
 public:
  SmoeGate(std::uint32_t experts_per_token, const PredictorMaterial& material)
      : experts_per_token_(experts_per_token),
        rows_(material.rows),
        most_tokens_(material.most_tokens),
        alpha_(material.alpha) {}

  std::string_view name() const override { return "smoe"; }
  std::uint32_t forecast_layers() const override { return 1; }
  bool forecasts_with_answers() const override { return true; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores& forecast) override {
    if (alpha_ == 0 || forecast.rows() > most_tokens_) {
      return GuessesFrom(forecast, experts_per_token_);
    }
    TopScores top = TopScoreGuesses(forecast, experts_per_token_, alpha_, rows_);
    left_out_ += top.left_out;
    return std::move(top.guesses);
  }
  std::uint64_t left_out() const override { return left_out_; }

 private:
  std::uint32_t experts_per_token_;
  ForecastRows rows_;
  std::uint32_t most_tokens_;
  double alpha_;
  std::uint64_t left_out_ = 0;
};

}  // namespace troupe
