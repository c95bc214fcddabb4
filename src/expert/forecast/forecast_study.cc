#include "expert/forecast/forecast_study.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "expert/forecast/gate_guesses.h"

namespace troupe {
namespace {

double Cosine(std::span<const float> a, std::span<const float> b) {
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
}

}  // namespace

std::string_view Name(ForecastPlace place) {
  switch (place) {
    case ForecastPlace::kAttentionBefore:
      return "attention input";
    case ForecastPlace::kGateBefore:
      return "gate input";
    case ForecastPlace::kOwnAttention:
      return "next attention input";
  }
  return "";
}

std::vector<std::uint32_t> TopOf(std::span<const float> row, std::uint32_t count) {
  std::vector<std::uint32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater(), [row](std::uint32_t e) { return row[e]; });
  order.resize(std::min<std::size_t>(count, order.size()));
  return order;
}

void ForecastStudy::Add(std::uint32_t layer, ForecastPlace place, std::span<const float> early,
                        std::span<const float> own, const GateScores& forecast,
                        const GateScores& said) {
  const std::size_t rows = said.rows();
  TROUPE_CHECK(forecast.rows() == rows && early.size() == own.size() && rows > 0);
  const std::size_t width = early.size() / rows;
  ForecastQuality& sums = layers_[layer][static_cast<std::size_t>(place)];
  for (std::size_t r = 0; r < rows; ++r) {
    const std::vector<std::uint32_t> chosen = TopOf(said.Row(r), experts_per_token_);
    const std::vector<Guess> guesses =
        GuessesFrom({.experts = forecast.experts, .scores = forecast.Row(r)}, experts_per_token_);
    double expected = 0, guessed = 0;
    for (const Guess& guess : guesses) {
      if (std::ranges::find(chosen, guess.expert) == chosen.end()) continue;
      guessed += 1;
      expected += guess.expected ? 1 : 0;
    }
    ++sums.tokens;
    sums.similarity += Cosine(early.subspan(r * width, width), own.subspan(r * width, width));
    sums.expected += expected / static_cast<double>(chosen.size());
    sums.guessed += guessed / static_cast<double>(chosen.size());
  }
}

ForecastQuality ForecastStudy::Of(std::uint32_t layer, ForecastPlace place) const {
  ForecastQuality mean = layers_[layer][static_cast<std::size_t>(place)];
  if (mean.tokens == 0) return mean;
  const auto tokens = static_cast<double>(mean.tokens);
  mean.similarity /= tokens;
  mean.expected /= tokens;
  mean.guessed /= tokens;
  return mean;
}

}  // namespace troupe
