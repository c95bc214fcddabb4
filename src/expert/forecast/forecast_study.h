// How good forecasts are, measured over a text: for each layer and each place where the stream can
// be shown to its gate early, how like that is to the gate's own input and how much of what the
// gate then chose was predicted. Figures only; where the rows come from is lab/calibration.h's.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

// Fate's three places: of the layer before, what goes into its attention and what into its gate;
// and what goes into the layer's own attention.
enum class ForecastPlace { kAttentionBefore, kGateBefore, kOwnAttention };
inline constexpr std::array kForecastPlaces = {
    ForecastPlace::kAttentionBefore, ForecastPlace::kGateBefore, ForecastPlace::kOwnAttention};
// "attention input", "gate input", "next attention input": as the paper names them.
std::string_view Name(ForecastPlace place);

struct ForecastQuality {
  std::uint64_t tokens = 0;
  double similarity = 0;  // cosine of the two inputs; means over tokens
  double expected = 0;    // of the chosen: in the forecast's top-k
  double guessed = 0;     // in its guesses by the percentile rule

  bool operator==(const ForecastQuality&) const = default;
};

class ForecastStudy {
 public:
  ForecastStudy(std::uint32_t layers, std::uint32_t experts_per_token)
      : experts_per_token_(experts_per_token), layers_(layers) {}

  // Rows of the same tokens: the stream as it was shown early and as the gate saw it, `width` wide,
  // and what the gate said of either.
  void Add(std::uint32_t layer, ForecastPlace place, std::span<const float> early,
           std::span<const float> own, const GateScores& forecast, const GateScores& said);

  // No tokens where nothing was added.
  ForecastQuality Of(std::uint32_t layer, ForecastPlace place) const;

 private:
  using Sums = std::array<ForecastQuality, kForecastPlaces.size()>;

  std::uint32_t experts_per_token_;
  std::vector<Sums> layers_;  // sums, not yet means
};

// The top-k of a row, best first.
std::vector<std::uint32_t> TopOf(std::span<const float> row, std::uint32_t count);

}  // namespace troupe
