#include "expert/forecast/top_score_guesses.h"

#include <algorithm>
#include <cmath>

#include "expert/forecast/gate_guesses.h"

namespace troupe {

TopScores TopScoreGuesses(const GateScores& forecast, std::uint32_t experts_per_token, double alpha,
                          ForecastRows kind) {
  TopScores found{.guesses = GuessesFrom(forecast, experts_per_token)};
  std::vector<bool> top(forecast.experts, experts_per_token >= forecast.experts);
  std::vector<float> sorted;
  for (std::size_t r = 0; r < forecast.rows() && experts_per_token < forecast.experts; ++r) {
    const std::span<const float> row = forecast.Row(r);
    if (!std::ranges::all_of(row, [](float score) { return std::isfinite(score); })) continue;
    sorted.assign(row.begin(), row.end());
    std::ranges::nth_element(sorted, sorted.begin() + experts_per_token, std::greater());
    const double boundary = sorted[experts_per_token];
    const double above =
        kind == ForecastRows::kLogits ? boundary + std::log1p(alpha) : (1 + alpha) * boundary;
    for (std::uint32_t e = 0; e < forecast.experts; ++e) top[e] = top[e] || row[e] > above;
  }
  found.left_out =
      std::erase_if(found.guesses, [&](const Guess& guess) { return !top[guess.expert]; });
  return found;
}

}  // namespace troupe
