// SMoE's rule of what to read ahead: of the experts that a forecast of the next layer's gate would
// choose, only those of top score. The others' places may be filled by substitutes, so reading them
// ahead buys little. The model makes the forecast.
#pragma once

#include <cstddef>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

struct TopScores {
  std::vector<Guess> guesses;
  std::size_t left_out = 0;  // guesses that are not of top score
};

// Those of GuessesFrom (gate_guesses.h) whose score is above (1 + alpha) times the (k+1)-th in some
// row; with alpha 0 all that would be chosen but for ties.
TopScores TopScoreGuesses(const GateScores& forecast, std::uint32_t experts_per_token, double alpha,
                          ForecastRows kind);

}  // namespace troupe
