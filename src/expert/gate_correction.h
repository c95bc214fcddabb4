// What a gate's forecast gets wrong, learned while tokens pass. A gate that is asked one or more
// layers early reads a stream to which those layers have not yet added anything; what they add is
// to a large part the same function of the forecast for every token. For each layer and distance a
// linear map from the forecast's own scores to its error is fitted, one step a token (normalised
// least mean squares): no model weights are needed, and a table of experts x experts does.
//
// Kept apart from its use (lookahead_gate.h). Pure, like all policies.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/predictor.h"

namespace troupe {

// What was learned of one layer seen from one distance.
struct LearnedForecast {
  std::uint32_t layer = 0;
  std::uint32_t ahead = 0;
  std::vector<float> table;   // experts x experts: a row a score of the forecast
  std::vector<float> offset;  // of each expert's score

  bool operator==(const LearnedForecast&) const = default;
};

class GateCorrection {
 public:
  static Bytes BytesFor(ExpertGrid grid, std::uint32_t layers_ahead);

  // Forecasts come from 1 to `layers_ahead` layers before the layer that they are for.
  GateCorrection(ExpertGrid grid, std::uint32_t layers_ahead);

  // Adds to the rows of a forecast for `layer` what it is expected to miss. Of several forecasts
  // for a layer and distance the latest is learned from.
  void Correct(std::uint32_t layer, std::uint32_t ahead, std::span<float> rows);
  // What the layer's gate then said of the same tokens. Forecasts of other numbers of rows were of
  // another pass and teach nothing.
  void Learn(std::uint32_t layer, const GateScores& said);

  std::uint64_t learned_rows() const { return learned_rows_; }

  // Everything learned, and beginning with what another run has learned; what is for other layers
  // or distances than this one's is left out.
  std::vector<LearnedForecast> Learned() const;
  void BeginWith(std::span<const LearnedForecast> learned);

 private:
  // One layer seen from one distance.
  struct Map {
    bool learned = false;
    std::vector<float> table, offset;  // as in LearnedForecast
    std::vector<float> features;       // of the forecast not yet learned from: rows of experts
    std::vector<float> forecast;       // its rows, before they were corrected
  };

  Map& At(std::uint32_t layer, std::uint32_t ahead) {
    return maps_[std::size_t{layer} * layers_ahead_ + ahead - 1];
  }
  void Expect(const Map& map, std::span<const float> features, std::span<float> row) const;
  void LearnRow(Map& map, std::size_t row, std::span<const float> said);

  ExpertGrid grid_;
  std::uint32_t layers_ahead_;
  std::vector<Map> maps_;
  std::vector<float> error_;
  std::uint64_t learned_rows_ = 0;
};

}  // namespace troupe
