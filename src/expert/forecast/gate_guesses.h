// From what a gate is expected to say to guesses: each token's top-k are expected, and by Fate's
// rule every expert above the 75th percentile of its row is likely. With many tokens, by
// popularity.
#pragma once

#include <cstdint>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

// Rows that are no numbers are left out: a guess may be missing, it cannot be wrong in that way.
std::vector<Guess> GuessesFrom(const GateScores& forecast, std::uint32_t experts_per_token);

}  // namespace troupe
