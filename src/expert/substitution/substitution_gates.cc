#include "expert/substitution/substitution_gates.h"

#include <fmt/core.h>

#include "base/check.h"
#include "expert/substitution/token_entropy.h"

namespace troupe {

AskedExperts CountAsked(const LayerAnswers& layer) {
  std::vector<bool> seen(layer.routed().experts);
  AskedExperts asked;
  for (const ExpertChoice& slot : layer.routed().chosen) {
    if (seen[slot.expert]) continue;
    seen[slot.expert] = true;
    ++asked.all;
    asked.missing += layer.Missing(slot.expert) ? 1 : 0;
  }
  return asked;
}

SubstitutionGates::SubstitutionGates(Options options) : options_(std::move(options)) {
  TROUPE_CHECK(options_.temperature > 0);
}

bool SubstitutionGates::PassMayChange(const AskedExperts& asked) {
  const bool may =
      options_.budget > 0 ? asked.missing < options_.budget : asked.MissingShare() < options_.beta;
  counts_.beta_closed += may ? 0 : 1;
  return may;
}

bool SubstitutionGates::TokenMayChange(const RoutedLayer& routed, std::size_t token) {
  const std::vector<double>& layers = options_.tau_by_layer;
  TROUPE_CHECK(layers.empty() || routed.layer < layers.size());
  const TokenEvenness evenness = EvennessOf(routed.Chosen(token), options_.temperature);
  const double tau = layers.empty() ? options_.tau : layers[routed.layer];
  if (evenness.entropy <= tau) {
    ++counts_.tau_closed;
    return false;
  }
  if (evenness.margin >= options_.gamma) {
    ++counts_.gamma_closed;
    return false;
  }
  return true;
}

std::string SubstitutionGates::ToString(bool tau_and_beta) const {
  const Options open;
  std::string text;
  const auto add = [&](std::string_view key, auto value, auto usual) {
    if (value != usual) text += fmt::format(":{}={}", key, value);
  };
  if (!options_.tau_by_layer.empty()) {
    text += ":tau=layers";
  } else if (tau_and_beta || options_.tau != open.tau) {
    text += fmt::format(":tau={}", options_.tau);
  }
  add("temperature", options_.temperature, open.temperature);
  add("gamma", options_.gamma, open.gamma);
  if (options_.budget > 0) {
    text += fmt::format(":budget={}", options_.budget);
  } else if (tau_and_beta || options_.beta != open.beta) {
    text += fmt::format(":beta={}", options_.beta);
  }
  return text;
}

void SubstitutionGates::AddCounts(std::vector<NamedCount>& counts) const {
  counts.push_back({"beta_closed", counts_.beta_closed});
  counts.push_back({"tau_closed", counts_.tau_closed});
  counts.push_back({"gamma_closed", counts_.gamma_closed});
}

}  // namespace troupe
