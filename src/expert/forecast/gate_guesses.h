// From what a gate is expected to say to guesses: each token's top-k are expected, and by Fate's
// rule every expert above the 75th percentile of its row is likely. With many tokens, by
// popularity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

// Of a row's scores the 75th percentile, interpolated between the two nearest; `falling`: its
// places from the highest score down.
float UpperQuartile(std::span<const float> row, std::span<const std::uint32_t> falling);

// Rows that are no numbers are left out: a guess may be missing, it cannot be wrong in that way.
std::vector<Guess> GuessesFrom(const GateScores& forecast, std::uint32_t experts_per_token);

}  // namespace troupe
