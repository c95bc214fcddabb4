#include "expert/cross_layer_gate.h"

#include <algorithm>

namespace troupe {
namespace {

// Of a row of scores; with 64 experts the 16 likeliest exceed it.
float SeventyFifthPercentile(std::span<const float> row) {
  std::vector<float> sorted(row.begin(), row.end());
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() * 3 / 4);
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}

}  // namespace

std::vector<Guess> CrossLayerGate::Predict(std::uint32_t, const GateForecast& forecast) {
  const std::size_t experts = grid_.experts, tokens = forecast.tokens;
  if (tokens == 0) return {};
  std::vector<Guess> all(experts);
  for (std::uint32_t e = 0; e < experts; ++e) all[e].expert = e;
  // Whole numbers count tokens that would choose the expert; the sum of their scores, below one a
  // token, orders those that as many would choose.
  for (const std::uint32_t expert : forecast.chosen) {
    all[expert].expected = true;
    all[expert].weight += 1;
  }
  std::vector<bool> likely(experts);
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::span<const float> row = forecast.scores.subspan(t * experts, experts);
    const float bound = SeventyFifthPercentile(row);
    for (std::size_t e = 0; e < experts; ++e) {
      if (row[e] > bound) likely[e] = true;
      all[e].weight += row[e] / static_cast<float>(tokens);
    }
  }
  std::erase_if(all, [&](const Guess& guess) { return !guess.expected && !likely[guess.expert]; });
  std::ranges::stable_sort(all, [](const Guess& a, const Guess& b) { return a.weight > b.weight; });
  return all;
}

}  // namespace troupe
