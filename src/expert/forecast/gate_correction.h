// What a gate's forecast gets wrong, learned while tokens pass. A gate that is asked one or more
// layers early reads a stream to which those layers have not yet added anything; what they add is
// to a large part a function of the forecast itself and of the experts that the present layer has
// chosen, whose answers come between. For each layer and distance a linear map from both to the
// forecast's error is fitted, one step a token (normalised least mean squares): no model weights
// are needed, and a table of twice the experts x experts does.
//
// Kept apart from its use (lookahead_gate.h). Pure, like all policies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/forecast/predictor.h"

namespace troupe {

// What was learned of one layer seen from one distance.
struct LearnedForecast {
  std::uint32_t layer = 0;
  std::uint32_t ahead = 0;
  // A row of experts for each score of the forecast, then for each expert that the present layer
  // may have chosen.
  std::vector<float> table;
  std::vector<float> offset;  // of each expert's score

  static std::size_t TableSize(std::size_t experts) { return 2 * experts * experts; }

  bool operator==(const LearnedForecast&) const = default;
};

class GateCorrection {
 public:
  // For passes of at most kMostForecastRows.
  static Bytes BytesFor(ExpertGrid grid, std::uint32_t layers_ahead);

  // Forecasts come from 1 to `layers_ahead` layers before the layer that they are for.
  GateCorrection(ExpertGrid grid, std::uint32_t experts_per_token, std::uint32_t layers_ahead);

  // Adds to the rows of a forecast for `layer` what it is expected to miss, after the layer that
  // lies `ahead` before it was learned from. Of several forecasts for a layer and distance the
  // latest is learned from.
  void Correct(std::uint32_t layer, std::uint32_t ahead, std::span<float> rows);
  // What the layer's gate then said of the same tokens. Forecasts of other numbers of rows were of
  // another pass and teach nothing.
  void Learn(std::uint32_t layer, const GateScores& said);

  std::uint64_t learned_rows() const { return learned_rows_; }
  // What its buffers hold at most so far, tables included.
  Bytes bytes() const;

  // Everything learned, and beginning with what another run has learned; what is for other layers
  // or distances than this one's is left out.
  std::vector<LearnedForecast> Learned() const;
  void BeginWith(std::span<const LearnedForecast> learned);

 private:
  // One layer seen from one distance.
  struct Map {
    bool learned = false;
    std::vector<float> table, offset;  // as in LearnedForecast
  };
  // Rows of a layer that are still needed; the next layers' take their place.
  struct Rows {
    std::uint32_t layer = 0;
    std::vector<float> values;  // empty: none
  };

  Map& At(std::uint32_t layer, std::uint32_t ahead) {
    return maps_[std::size_t{layer} * layers_ahead_ + ahead - 1];
  }
  Rows& Forecast(std::uint32_t layer, std::uint32_t ahead) {
    return forecasts_[layer % Window() * layers_ahead_ + ahead - 1];
  }
  Rows& Chosen(std::uint32_t layer) { return chosen_[layer % Window()]; }
  std::uint32_t Window() const { return layers_ahead_ + 1; }

  void SetFeatures(std::span<const float> forecast, std::span<const float> chosen);
  std::span<const float> ChosenBefore(std::uint32_t layer, std::uint32_t ahead, std::size_t at,
                                      std::size_t size);
  void Expect(const Map& map, std::span<float> row) const;
  void LearnRow(Map& map, std::span<const float> forecast, std::span<const float> said);
  void KeepChosen(std::uint32_t layer, const GateScores& said);

  ExpertGrid grid_;
  std::uint32_t experts_per_token_, layers_ahead_;
  std::vector<Map> maps_;
  std::vector<Rows> forecasts_;  // by layer and distance, before they were corrected
  std::vector<Rows> chosen_;     // by layer: standardised scores of what was chosen, others zero
  std::vector<float> features_;  // of one row: the forecast's, then the present layer's
  float feature_length_ = 0;     // squared
  std::vector<float> error_;
  std::uint64_t learned_rows_ = 0;
};

}  // namespace troupe
