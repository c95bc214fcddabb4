#include "expert/substitution/drop_slots.h"

#include <fmt/core.h>

namespace troupe {

double WeightShare(std::span<const ExpertChoice> chosen, std::uint32_t slot) {
  double sum = 0;
  for (const ExpertChoice& other : chosen) sum += other.weight;
  return sum > 0 ? chosen[slot].weight / sum : 0;
}

std::string DropMissing::ToString() const {
  std::string text = "drop" + gates_.ToString();
  if (options_.weight == DroppedWeight::kShared) text += ":renormalise=1";
  if (options_.most_share < 1) text += fmt::format(":most-share={}", options_.most_share);
  if (options_.rho != kNoLimit) text += fmt::format(":rho={}", options_.rho);
  return text;
}

std::vector<NamedCount> DropMissing::counts() const {
  std::vector<NamedCount> counts = {{"too_heavy", counts_.too_heavy},
                                    {"rho_closed", counts_.rho_closed},
                                    {"dropped", counts_.dropped}};
  gates_.AddCounts(counts);
  return counts;
}

void DropMissing::Answer(LayerAnswers& layer) {
  const AskedExperts asked = CountAsked(layer);
  if (asked.missing == 0 || !gates_.PassMayChange(asked)) return;
  for (std::size_t token = 0; token < layer.tokens(); ++token) {
    if (!layer.HasOpen(token) || !gates_.TokenMayChange(layer.routed(), token)) continue;
    for (std::uint32_t slot = layer.routed().top_k; slot-- > 0;) {
      if (!layer.Open(token, slot)) continue;
      if (WeightShare(layer.routed().Chosen(token), slot) > options_.most_share) {
        ++counts_.too_heavy;
      } else if (layer.Replaced(token) >= options_.rho) {
        ++counts_.rho_closed;
      } else {
        ++counts_.dropped;
        layer.Drop(token, slot, options_.weight);
      }
    }
  }
}

std::string SmallerTopK::ToString() const {
  std::string text = fmt::format("top{}:keep={}", gates_.ToString(), options_.keep);
  if (options_.most_share < 1) text += fmt::format(":most-share={}", options_.most_share);
  return text;
}

std::vector<NamedCount> SmallerTopK::counts() const {
  std::vector<NamedCount> counts = {{"too_heavy", counts_.too_heavy},
                                    {"dropped", counts_.dropped},
                                    {"dropped_resident", counts_.dropped_resident}};
  gates_.AddCounts(counts);
  return counts;
}

// As if the model had been made with a smaller top-k: where it divides weights by their sum, the
// rest is scaled up.
void SmallerTopK::Answer(LayerAnswers& layer) {
  const RoutedLayer& routed = layer.routed();
  const DroppedWeight weight = routed.normalised ? DroppedWeight::kShared : DroppedWeight::kLost;
  if (options_.keep >= routed.top_k || !gates_.PassMayChange(CountAsked(layer))) return;
  for (std::size_t token = 0; token < layer.tokens(); ++token) {
    if (!gates_.TokenMayChange(routed, token)) continue;
    for (std::uint32_t slot = options_.keep; slot < routed.top_k; ++slot) {
      const std::uint32_t expert = routed.Chosen(token)[slot].expert;
      if (layer.Kind(token, slot) != AnswerKind::kKeep || layer.Pledged(expert)) continue;
      if (WeightShare(routed.Chosen(token), slot) > options_.most_share) {
        ++counts_.too_heavy;
        continue;
      }
      ++counts_.dropped;
      counts_.dropped_resident += layer.Resident(expert) ? 1 : 0;
      layer.Drop(token, slot, weight);
    }
  }
}

}  // namespace troupe
