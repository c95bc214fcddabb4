// The lookahead's forecasts, and SMoE's rule of which of them to read ahead: those that a resident
// expert of like score cannot stand in for (top_score_guesses.h). Of use where missing experts are
// substituted; elsewhere what it leaves out has to be waited for.
#pragma once

#include <utility>

#include "expert/forecast/lookahead_gate.h"
#include "expert/forecast/top_score_guesses.h"

namespace troupe {

class TopScoreGate final : public LookaheadGate {
 public:
  TopScoreGate(ExpertGrid grid, std::uint32_t experts_per_token, const PredictorMaterial& material)
      : LookaheadGate(grid, experts_per_token, material.learned),
        rows_(material.rows),
        most_tokens_(material.most_tokens),
        alpha_(material.alpha) {}

  std::string_view name() const override { return "top-score"; }
  std::vector<Guess> Predict(std::uint32_t layer, std::uint32_t ahead,
                             const GateScores& forecast) override {
    // Larger passes get what they ask for. A forecast has a row a token, of very many a sample.
    if (forecast.rows() > most_tokens_) return LookaheadGate::Predict(layer, ahead, forecast);
    TopScores top =
        TopScoreGuesses(Corrected(layer, ahead, forecast), experts_per_token(), alpha_, rows_);
    left_out_ += top.left_out;
    return std::move(top.guesses);
  }
  std::uint64_t left_out() const override { return left_out_; }

 private:
  ForecastRows rows_;
  std::uint32_t most_tokens_;
  double alpha_;
  std::uint64_t left_out_ = 0;
};

}  // namespace troupe
