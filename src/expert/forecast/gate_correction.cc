#include "expert/forecast/gate_correction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "expert/forecast/forecast_study.h"

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
  const std::size_t tables = std::size_t{grid.layers} * layers_ahead *
                             (LearnedForecast::TableSize(grid.experts) + grid.experts);
  const std::size_t window = layers_ahead + 1;
  const std::size_t rows = window * (layers_ahead + 1) * kMostForecastRows * grid.experts;
  return Bytes((tables + rows + 3 * std::size_t{grid.experts}) * sizeof(float));
}

GateCorrection::GateCorrection(ExpertGrid grid, std::uint32_t experts_per_token,
                               std::uint32_t layers_ahead)
    : grid_(grid),
      experts_per_token_(experts_per_token),
      layers_ahead_(layers_ahead),
      maps_(std::size_t{grid.layers} * layers_ahead),
      forecasts_(std::size_t{layers_ahead + 1} * layers_ahead),
      chosen_(layers_ahead + 1),
      features_(2 * std::size_t{grid.experts}),
      error_(grid.experts) {
  for (Map& map : maps_) {
    map.table.resize(LearnedForecast::TableSize(grid.experts));
    map.offset.resize(grid.experts);
  }
  const std::size_t most = kMostForecastRows * grid.experts;
  for (Rows& rows : forecasts_) rows.values.reserve(most);
  for (Rows& rows : chosen_) rows.values.reserve(most);
}

Bytes GateCorrection::bytes() const {
  std::size_t floats = features_.capacity() + error_.capacity();
  for (const Map& map : maps_) floats += map.table.capacity() + map.offset.capacity();
  for (const Rows& rows : forecasts_) floats += rows.values.capacity();
  for (const Rows& rows : chosen_) floats += rows.values.capacity();
  return Bytes(floats * sizeof(float));
}

void GateCorrection::SetFeatures(std::span<const float> forecast, std::span<const float> chosen) {
  const std::span<float> of_forecast = std::span(features_).first(grid_.experts);
  const std::span<float> of_present = std::span(features_).last(grid_.experts);
  Standardise(forecast, of_forecast);
  if (chosen.empty()) {
    std::ranges::fill(of_present, 0.0f);
  } else {
    std::ranges::copy(chosen, of_present.begin());
  }
  feature_length_ = std::inner_product(features_.begin(), features_.end(), features_.begin(), 0.0f);
}

// The row at `at` of what the layer chose that lies so far before; empty if that was another pass.
std::span<const float> GateCorrection::ChosenBefore(std::uint32_t layer, std::uint32_t ahead,
                                                    std::size_t at, std::size_t size) {
  if (ahead > layer) return {};
  const Rows& rows = Chosen(layer - ahead);
  if (rows.layer != layer - ahead || rows.values.size() != size) return {};
  return std::span(rows.values).subspan(at, grid_.experts);
}

void GateCorrection::Expect(const Map& map, std::span<float> row) const {
  const std::size_t experts = grid_.experts;
  AddScaled(1, map.offset, row);
  for (std::size_t i = 0; i < features_.size(); ++i) {
    if (features_[i] == 0) continue;  // most of the present layer's experts were not chosen
    AddScaled(features_[i], std::span(map.table).subspan(i * experts, experts), row);
  }
}

void GateCorrection::Correct(std::uint32_t layer, std::uint32_t ahead, std::span<float> rows) {
  TROUPE_CHECK(ahead >= 1 && ahead <= layers_ahead_ && rows.size() % grid_.experts == 0);
  Rows& kept = Forecast(layer, ahead);
  kept.layer = layer;
  kept.values.assign(rows.begin(), rows.end());
  for (std::size_t at = 0; at < rows.size(); at += grid_.experts) {
    const std::span<float> row = rows.subspan(at, grid_.experts);
    SetFeatures(row, ChosenBefore(layer, ahead, at, rows.size()));
    Expect(At(layer, ahead), row);
  }
}

void GateCorrection::LearnRow(Map& map, std::span<const float> forecast,
                              std::span<const float> said) {
  const std::size_t experts = grid_.experts;
  // Against the map as it is by now, which rows of the same pass may have changed.
  std::ranges::copy(forecast, error_.begin());
  Expect(map, error_);
  for (std::size_t e = 0; e < experts; ++e) error_[e] = said[e] - error_[e];
  const float step = kStep / (1 + feature_length_);
  for (std::size_t i = 0; i < features_.size(); ++i) {
    if (features_[i] == 0) continue;
    AddScaled(step * features_[i], error_, std::span(map.table).subspan(i * experts, experts));
  }
  AddScaled(kOffsetStep, error_, map.offset);
  map.learned = true;
  ++learned_rows_;
}

void GateCorrection::Learn(std::uint32_t layer, const GateScores& said) {
  const std::size_t experts = grid_.experts;
  for (std::uint32_t ahead = 1; ahead <= layers_ahead_; ++ahead) {
    Rows& forecast = Forecast(layer, ahead);
    if (forecast.layer == layer && forecast.values.size() == said.scores.size()) {
      for (std::size_t row = 0; row < said.rows(); ++row) {
        const auto early = std::span<const float>(forecast.values).subspan(row * experts, experts);
        if (!AllFinite(early) || !AllFinite(said.Row(row))) continue;
        SetFeatures(early, ChosenBefore(layer, ahead, row * experts, said.scores.size()));
        LearnRow(At(layer, ahead), early, said.Row(row));
      }
    }
    forecast.values.clear();
  }
  KeepChosen(layer, said);
}

void GateCorrection::KeepChosen(std::uint32_t layer, const GateScores& said) {
  Rows& kept = Chosen(layer);
  kept.layer = layer;
  kept.values.assign(said.scores.size(), 0.0f);
  std::vector<float>& standard = error_;
  for (std::size_t row = 0; row < said.rows(); ++row) {
    if (!AllFinite(said.Row(row))) continue;
    Standardise(said.Row(row), standard);
    for (const std::uint32_t expert : TopOf(said.Row(row), experts_per_token_)) {
      kept.values[row * grid_.experts + expert] = standard[expert];
    }
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
