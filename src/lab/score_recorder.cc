#include "lab/score_recorder.h"

#include "base/check.h"
#include "expert/forecast/predictor.h"

namespace troupe {

Bytes ScoreRecorder::BytesFor(ExpertGrid grid, std::size_t tokens) {
  return ScoreLearner::BytesFor(grid) +
         Bytes(tokens * grid.Count() * (1 + kMostLayersAhead) * sizeof(float));
}

void ScoreRecorder::PassBegins(const PassFacts& pass) {
  if (next_ != nullptr) next_->PassBegins(pass);
  for (OfLayer& layer : layers_) {
    layer.routed = false;
    layer.early.clear();
  }
}

void ScoreRecorder::Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
                           std::span<const float> scores) {
  if (next_ != nullptr) next_->Routed(layer, chosen, scores);
  if (!records()) return;
  OfLayer& of = layers_[layer];
  of.routed = true;
  of.scores.assign(scores.begin(), scores.end());
  of.chosen.clear();
  for (const ExpertChoice& choice : chosen) of.chosen.push_back(choice.expert);
}

void ScoreRecorder::AskedEarly(std::uint32_t layer, std::uint32_t ahead,
                               std::span<const float> scores) {
  if (!records()) return;
  TROUPE_CHECK(ahead <= layer);
  layers_[layer - ahead].early.push_back(
      {.layer = layer, .ahead = ahead, .scores = {scores.begin(), scores.end()}});
}

void ScoreRecorder::Learn() {
  if (!records()) return;
  std::size_t tokens = 0;
  for (const OfLayer& of : layers_) {
    if (of.routed) tokens = of.scores.size() / grid_.experts;
  }
  std::vector<EarlyGate> gates;
  for (std::size_t t = 0; t < tokens; ++t) {
    learner_->TokenBegins(position_++);
    const auto row = [&](const std::vector<float>& rows) {
      return std::span(rows).subspan(t * grid_.experts, grid_.experts);
    };
    for (std::uint32_t layer = 0; layer < grid_.layers; ++layer) {
      const OfLayer& of = layers_[layer];
      if (!of.routed) continue;
      gates.clear();
      for (const Early& early : of.early) {
        gates.push_back({.layer = early.layer, .ahead = early.ahead, .scores = row(early.scores)});
      }
      const std::size_t each = of.chosen.size() / tokens;
      learner_->OnLayer(layer, row(of.scores), std::span(of.chosen).subspan(t * each, each), gates);
    }
  }
}

}  // namespace troupe
