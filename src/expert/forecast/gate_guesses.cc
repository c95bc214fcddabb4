#include "expert/forecast/gate_guesses.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {

float UpperQuartile(std::span<const float> row, std::span<const std::uint32_t> falling) {
  const std::size_t last = falling.size() - 1;
  const std::size_t quarters = 3 * last;  // of a place, counted from the lowest
  const float below = row[falling[last - quarters / 4]];
  if (quarters % 4 == 0) return below;
  const float above = row[falling[last - quarters / 4 - 1]];
  return below + static_cast<float>(quarters % 4) / 4 * (above - below);
}

std::vector<Guess> GuessesFrom(const GateScores& forecast, std::uint32_t experts_per_token) {
  const std::uint32_t experts = forecast.experts;
  const float rows = static_cast<float>(forecast.rows());
  std::vector<Guess> all(experts);
  for (std::uint32_t e = 0; e < experts; ++e) all[e].expert = e;
  std::vector<bool> likely(experts);
  std::vector<std::uint32_t> order(experts);
  for (std::size_t r = 0; r < forecast.rows(); ++r) {
    const std::span<const float> row = forecast.Row(r);
    if (!std::ranges::all_of(row, [](float score) { return std::isfinite(score); })) continue;
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, std::greater(), [row](std::uint32_t e) { return row[e]; });
    const float highest = row[order.front()], lowest = row[order.back()];
    const float quartile = UpperQuartile(row, order);
    for (std::uint32_t place = 0; place < experts; ++place) {
      const std::uint32_t e = order[place];
      const bool top = place < experts_per_token;
      if (top) all[e].expected = true;
      if (top || row[e] > quartile) likely[e] = true;
      // Whole numbers count tokens that would choose the expert; what stays below one for all of
      // them together orders those that as many would choose.
      const float height = highest > lowest ? (row[e] - lowest) / (highest - lowest) : 0;
      all[e].weight += (top ? 1.0f : 0.0f) + 0.999f * height / rows;
    }
  }
  std::erase_if(all, [&](const Guess& guess) { return !likely[guess.expert]; });
  std::ranges::stable_sort(all, std::greater(), &Guess::weight);
  return all;
}

}  // namespace troupe
