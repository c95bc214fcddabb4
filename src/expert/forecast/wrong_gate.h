// Guesses what the next layer is least likely to choose: the experts that its gate, asked early,
// ranks last. What such guesses cost is what bad guesses can cost at most; benchmarks and tests ask
// for it, nobody else should.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

class WrongGate final : public Predictor {
 public:
  explicit WrongGate(std::uint32_t experts_per_token) : experts_per_token_(experts_per_token) {}

  std::string_view name() const override { return "wrong"; }
  std::uint32_t forecast_layers() const override { return 1; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores& forecast) override {
    std::vector<float> highest(forecast.experts, -std::numeric_limits<float>::infinity());
    for (std::size_t r = 0; r < forecast.rows(); ++r) {
      const std::span<const float> row = forecast.Row(r);
      for (std::uint32_t e = 0; e < forecast.experts; ++e) {
        highest[e] = std::max(highest[e], row[e]);
      }
    }
    std::vector<std::uint32_t> order(forecast.experts);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t e) { return highest[e]; });
    std::vector<Guess> guesses;
    for (const std::uint32_t e : order) {
      if (guesses.size() == 2 * std::size_t{experts_per_token_}) break;
      guesses.push_back({.expert = e, .weight = -highest[e], .expected = true});
    }
    return guesses;
  }

 private:
  std::uint32_t experts_per_token_;
};

}  // namespace troupe
