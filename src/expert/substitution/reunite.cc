#include "expert/substitution/reunite.h"

namespace troupe {

void Reunite::Answer(LayerAnswers& layer) {
  const RoutedLayer& routed = layer.routed();
  kept_.assign(routed.experts, false);
  const auto for_missing = [&](const auto& visit) {
    for (std::size_t token = 0; token < layer.tokens(); ++token) {
      for (std::uint32_t slot = 0; slot < routed.top_k; ++slot) {
        const std::uint32_t expert = routed.Chosen(token)[slot].expert;
        if (layer.Missing(expert)) visit(token, slot, expert);
      }
    }
  };
  for_missing([&](std::size_t token, std::uint32_t slot, std::uint32_t expert) {
    if (layer.Kind(token, slot) == AnswerKind::kKeep) kept_[expert] = true;
  });
  for_missing([&](std::size_t token, std::uint32_t slot, std::uint32_t expert) {
    if (!kept_[expert] || layer.Kind(token, slot) == AnswerKind::kKeep) return;
    layer.Restore(token, slot);
    ++restored_;
  });
}

}  // namespace troupe
