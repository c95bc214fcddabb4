#include "expert/substitution/cache_bias.h"

#include <fmt/core.h>

#include <algorithm>

namespace troupe {

std::string CacheBias::ToString() const {
  std::string text = fmt::format("bias:bonus={}", options_.bonus);
  if (options_.rho != kNoLimit) text += fmt::format(":rho={}", options_.rho);
  return text;
}

std::vector<NamedCount> CacheBias::counts() const {
  return {{"unknown", counts_.unknown},
          {"out_of_reach", counts_.out_of_reach},
          {"rho_closed", counts_.rho_closed},
          {"substituted", counts_.substituted}};
}

void CacheBias::Answer(LayerAnswers& layer) {
  if (layer.routed().scores.empty()) {
    counts_.unknown += layer.tokens();
    return;
  }
  for (std::size_t token = 0; token < layer.tokens(); ++token) AnswerToken(layer, token);
}

// Only missing experts can fall out, and only resident ones get in: the least of the one against
// the best of the other until the bonus no longer turns the order round.
void CacheBias::AnswerToken(LayerAnswers& layer, std::size_t token) {
  const RoutedLayer& routed = layer.routed();
  const std::span<const float> scores = routed.Scores(token);
  candidates_.clear();
  for (std::uint32_t e = 0; e < routed.experts; ++e) {
    if (layer.Resident(e) && layer.NewTo(token, e)) candidates_.push_back(e);
  }
  std::ranges::stable_sort(candidates_, std::greater<>(),
                           [&](std::uint32_t e) { return scores[e]; });
  const auto [least, most] = std::ranges::minmax(scores);
  const double bonus = options_.bonus * (double{most} - least);
  std::size_t next = 0;
  for (std::uint32_t slot = routed.top_k; slot-- > 0;) {
    if (!layer.Open(token, slot)) continue;
    const double score = scores[routed.Chosen(token)[slot].expert];
    if (bonus <= 0 || next == candidates_.size() || scores[candidates_[next]] + bonus <= score) {
      ++counts_.out_of_reach;
    } else if (layer.Replaced(token) >= options_.rho) {
      ++counts_.rho_closed;
    } else {
      ++counts_.substituted;
      layer.Substitute(token, slot, candidates_[next++], SubstituteWeight::kOfItsScore);
    }
  }
}

}  // namespace troupe
