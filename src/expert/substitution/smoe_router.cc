#include "expert/substitution/smoe_router.h"

#include <fmt/core.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr float kChoseAll = -1;

bool IsChosen(std::span<const ExpertChoice> chosen, std::uint32_t expert) {
  return std::ranges::find(chosen, expert, &ExpertChoice::expert) != chosen.end();
}

}  // namespace

float BoundaryScore(std::span<const ExpertChoice> chosen, std::span<const float> scores) {
  float best = kChoseAll;
  for (std::uint32_t e = 0; e < scores.size(); ++e) {
    if (scores[e] > best && !IsChosen(chosen, e)) best = scores[e];
  }
  return best;
}

std::string SmoeRouter::ToString() const { return fmt::format("smoe:alpha={}", options_.alpha); }

std::vector<NamedCount> SmoeRouter::counts() const {
  return {{"top_score", counts_.top_score},
          {"low_score", counts_.low_score},
          {"low_score_missing", counts_.low_score_missing},
          {"shared", counts_.shared},
          {"substituted", counts_.substituted},
          {"borrowed", counts_.borrowed},
          {"none_near", counts_.none_near},
          {"unknown", counts_.unknown}};
}

void SmoeRouter::Answer(LayerAnswers& layer) {
  if (layer.routed().scores.empty()) {
    counts_.unknown += layer.tokens();
    return;
  }
  boundaries_.clear();
  for (std::size_t t = 0; t < layer.tokens(); ++t) {
    boundaries_.push_back(BoundaryScore(layer.routed().Chosen(t), layer.routed().Scores(t)));
  }
  PledgeTopScores(layer);
  for (std::size_t t = 0; t < layer.tokens(); ++t) AnswerToken(layer, t);
}

// All tokens' top scores are known before any token looks for substitutes: what one of them brings
// must not depend on which comes first.
void SmoeRouter::PledgeTopScores(LayerAnswers& layer) {
  const RoutedLayer& routed = layer.routed();
  top_.assign(routed.experts, false);
  for (std::size_t t = 0; t < layer.tokens(); ++t) {
    const double above = (1 + options_.alpha) * boundaries_[t];
    for (std::uint32_t slot = 0; slot < routed.top_k; ++slot) {
      const std::uint32_t expert = routed.Chosen(t)[slot].expert;
      if (routed.Scores(t)[expert] > above) {
        ++counts_.top_score;
        if (layer.Kind(t, slot) == AnswerKind::kKeep) top_[expert] = true;
      } else {
        ++counts_.low_score;
      }
    }
  }
}

void SmoeRouter::AnswerToken(LayerAnswers& layer, std::size_t token) {
  const RoutedLayer& routed = layer.routed();
  const std::span<const float> scores = routed.Scores(token);
  const double boundary = boundaries_[token];
  open_.clear();
  for (std::uint32_t slot = 0; slot < routed.top_k; ++slot) {
    const std::uint32_t expert = routed.Chosen(token)[slot].expert;
    if (scores[expert] > (1 + options_.alpha) * boundary || !layer.Open(token, slot)) continue;
    if (top_[expert]) {
      layer.Pledge(expert);
      ++counts_.shared;
      continue;
    }
    ++counts_.low_score_missing;
    open_.push_back(slot);
  }
  if (open_.empty()) return;

  candidates_.clear();
  for (std::uint32_t e = 0; e < routed.experts; ++e) {
    const bool near = scores[e] > (1 - options_.alpha) * boundary && scores[e] <= boundary;
    if (near && (layer.Resident(e) || top_[e]) && layer.NewTo(token, e)) candidates_.push_back(e);
  }
  std::ranges::stable_sort(candidates_, std::greater<>(),
                           [&](std::uint32_t e) { return scores[e]; });

  // Where there are too few, the best of the slots wait for their own experts.
  const std::size_t count = std::min(candidates_.size(), open_.size());
  const std::size_t first = open_.size() - count;
  counts_.none_near += first;
  counts_.substituted += count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t substitute = candidates_[i];
    if (!layer.Resident(substitute)) {
      layer.Pledge(substitute);
      ++counts_.borrowed;
    }
    layer.Substitute(token, open_[first + i], substitute, SubstituteWeight::kOfItsScore);
  }
}

}  // namespace troupe
