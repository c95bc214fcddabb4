#include "expert/gate_correction.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr float kStep = 0.2f;         // of the map, of at most 1; half or twice does as well
constexpr float kOffsetStep = 0.02f;  // of the offsets: their mean over the last fifty tokens

bool AllFinite(std::span<const float> row) {
  return std::ranges::all_of(row, [](float x) { return std::isfinite(x); });
}

// Mean 0 and variance 1, so that a gate's scale does not matter.
void Standardise(std::span<const float> row, std::span<float> features) {
  float sum = 0, squares = 0;
  for (const float x : row) sum += x;
  const float mean = sum / static_cast<float>(row.size());
  for (const float x : row) squares += (x - mean) * (x - mean);
  const float deviation = std::sqrt(squares / static_cast<float>(row.size()));
  const float scale = deviation > 0 ? 1 / deviation : 0;
  for (std::size_t e = 0; e < row.size(); ++e) features[e] = (row[e] - mean) * scale;
}

void AddScaled(float factor, std::span<const float> from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

}  // namespace

Bytes GateCorrection::BytesFor(ExpertGrid grid, std::uint32_t layers_ahead) {
  return Bytes(grid.Count() * (grid.experts + 1) * layers_ahead * sizeof(float));
}

GateCorrection::GateCorrection(ExpertGrid grid, std::uint32_t layers_ahead)
    : grid_(grid),
      layers_ahead_(layers_ahead),
      maps_(std::size_t{grid.layers} * layers_ahead),
      error_(grid.experts) {
  for (Map& map : maps_) {
    map.table.resize(std::size_t{grid.experts} * grid.experts);
    map.offset.resize(grid.experts);
  }
}

void GateCorrection::Expect(const Map& map, std::span<const float> features,
                            std::span<float> row) const {
  const std::size_t experts = grid_.experts;
  AddScaled(1, map.offset, row);
  for (std::size_t e = 0; e < experts; ++e) {
    AddScaled(features[e], std::span(map.table).subspan(e * experts, experts), row);
  }
}

void GateCorrection::Correct(std::uint32_t layer, std::uint32_t ahead, std::span<float> rows) {
  TROUPE_CHECK(ahead >= 1 && ahead <= layers_ahead_ && rows.size() % grid_.experts == 0);
  Map& map = At(layer, ahead);
  map.forecast.assign(rows.begin(), rows.end());
  map.features.resize(rows.size());
  for (std::size_t at = 0; at < rows.size(); at += grid_.experts) {
    const std::span<float> row = rows.subspan(at, grid_.experts);
    const std::span<float> features = std::span(map.features).subspan(at, grid_.experts);
    Standardise(row, features);
    Expect(map, features, row);
  }
}

void GateCorrection::LearnRow(Map& map, std::size_t row, std::span<const float> said) {
  const std::size_t experts = grid_.experts;
  const auto forecast = std::span<const float>(map.forecast).subspan(row * experts, experts);
  const auto features = std::span<const float>(map.features).subspan(row * experts, experts);
  if (!AllFinite(forecast) || !AllFinite(said)) return;
  // Against the map as it is by now, which rows of the same pass may have changed.
  std::ranges::copy(forecast, error_.begin());
  Expect(map, features, error_);
  for (std::size_t e = 0; e < experts; ++e) error_[e] = said[e] - error_[e];
  // Standardised features have a squared length of `experts`.
  const float step = kStep / static_cast<float>(1 + experts);
  for (std::size_t e = 0; e < experts; ++e) {
    AddScaled(step * features[e], error_, std::span(map.table).subspan(e * experts, experts));
  }
  AddScaled(kOffsetStep, error_, map.offset);
  map.learned = true;
  ++learned_rows_;
}

void GateCorrection::Learn(std::uint32_t layer, const GateScores& said) {
  for (std::uint32_t ahead = 1; ahead <= layers_ahead_; ++ahead) {
    Map& map = At(layer, ahead);
    if (map.forecast.size() == said.scores.size()) {
      for (std::size_t row = 0; row < said.rows(); ++row) LearnRow(map, row, said.Row(row));
    }
    map.forecast.clear();
    map.features.clear();
  }
}

std::vector<LearnedForecast> GateCorrection::Learned() const {
  std::vector<LearnedForecast> learned;
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    if (!maps_[i].learned) continue;
    learned.push_back({.layer = static_cast<std::uint32_t>(i / layers_ahead_),
                       .ahead = static_cast<std::uint32_t>(i % layers_ahead_) + 1,
                       .table = maps_[i].table,
                       .offset = maps_[i].offset});
  }
  return learned;
}

void GateCorrection::BeginWith(std::span<const LearnedForecast> learned) {
  for (const LearnedForecast& one : learned) {
    if (one.layer >= grid_.layers || one.ahead < 1 || one.ahead > layers_ahead_) continue;
    Map& map = At(one.layer, one.ahead);
    if (one.table.size() != map.table.size() || one.offset.size() != map.offset.size()) continue;
    map.table = one.table;
    map.offset = one.offset;
    map.learned = true;
  }
}

}  // namespace troupe
