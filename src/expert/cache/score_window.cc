#include "expert/cache/score_window.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace troupe {

Bytes ScoreWindow::BytesFor(ExpertGrid grid, std::uint32_t window) {
  return Bytes(grid.Count() * (window * sizeof(float) + sizeof(double) + sizeof(std::uint64_t)));
}

ScoreWindow::ScoreWindow(ExpertGrid grid, std::uint32_t window)
    : grid_(grid),
      window_(window),
      layers_(grid.layers),
      last_asked_(grid.Count()),
      shield_(grid.experts) {
  TROUPE_CHECK(window > 0);
  for (Layer& layer : layers_) {
    layer.rows.resize(std::size_t{window} * grid.experts);
    layer.sums.resize(grid.experts);
  }
}

void ScoreWindow::BeginLayer(std::uint32_t layer) {
  under_way_ = layer;
  std::fill(shield_.begin(), shield_.end(), false);
}

void ScoreWindow::OnScored(std::uint32_t layer, std::span<const float> scores) {
  TROUPE_CHECK(layer < grid_.layers && scores.size() % grid_.experts == 0);
  BeginLayer(layer);
  const std::size_t rows = scores.size() / grid_.experts;
  for (std::size_t row = rows - std::min<std::size_t>(rows, window_); row < rows; ++row) {
    AddRow(layers_[layer], scores.subspan(row * grid_.experts, grid_.experts));
  }
}

void ScoreWindow::AddRow(Layer& layer, std::span<const float> row) {
  float* place = layer.rows.data() + std::size_t{layer.next} * grid_.experts;
  for (std::uint32_t e = 0; e < grid_.experts; ++e) {
    layer.sums[e] += double{row[e]} - double{place[e]};
    place[e] = row[e];
  }
  layer.held = std::min(layer.held + 1, window_);
  layer.next = (layer.next + 1) % window_;
  if (layer.next != 0) return;
  // Once a turn the sums are made anew: errors do not add up.
  std::ranges::fill(layer.sums, 0.0);
  for (std::size_t i = 0; i < layer.rows.size(); ++i) {
    layer.sums[i % grid_.experts] += layer.rows[i];
  }
}

void ScoreWindow::OnAsked(ExpertId id, std::span<const Asker>) {
  if (id.layer != under_way_) BeginLayer(id.layer);
  shield_[id.expert] = true;
  last_asked_[grid_.Index(id)] = ++asks_;
}

double ScoreWindow::MeanScore(ExpertId id) const {
  const Layer& layer = layers_[id.layer];
  return layer.held == 0 ? 0 : layer.sums[id.expert] / layer.held;
}

std::size_t ScoreWindow::Choose(std::span<const ExpertId> candidates) {
  const auto shielded = [&](ExpertId id) { return id.layer == under_way_ && shield_[id.expert]; };
  // Equal scores, as before the first token: the one asked for longest ago.
  const auto worth = [&](ExpertId id) {
    return std::tuple(MeanScore(id), last_asked_[grid_.Index(id)], id);
  };
  std::size_t least = 0, least_free = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (worth(candidates[i]) < worth(candidates[least])) least = i;
    if (shielded(candidates[i])) continue;
    if (least_free == candidates.size() || worth(candidates[i]) < worth(candidates[least_free])) {
      least_free = i;
    }
  }
  // A shield gives way where all that may go are shielded: the cache is too small for the layer.
  if (least_free == candidates.size()) return least;
  shielded_ += least != least_free ? 1 : 0;
  return least_free;
}

}  // namespace troupe
