#include "expert/substitution/buddies.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"

namespace troupe {
namespace {

bool HasOpenSlot(const LayerAnswers& layer, std::size_t token) {
  for (std::uint32_t slot = 0; slot < layer.routed().top_k; ++slot) {
    if (layer.Open(token, slot)) return true;
  }
  return false;
}

// The token's own score of an expert as a share of its highest.
double RelativeScore(std::span<const float> scores, std::uint32_t expert) {
  if (scores.empty()) return 0;
  const float most = std::ranges::max(scores);
  return most > 0 ? double{scores[expert]} / most : 0;
}

}  // namespace

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

Buddies::Buddies(std::shared_ptr<const BuddyLists> lists, Options options)
    : lists_(std::move(lists)), options_(std::move(options)) {
  TROUPE_CHECK(lists_ != nullptr && options_.temperature > 0);
  const std::size_t layers = lists_->grid.layers;
  TROUPE_CHECK(options_.tau_by_layer.empty() || options_.tau_by_layer.size() == layers);
}

std::string Buddies::ToString() const {
  const Options standard;
  std::string text = "buddies:tau=";
  text += options_.tau_by_layer.empty() ? fmt::format("{}", options_.tau) : "layers";
  const auto add = [&](std::string_view key, auto value, auto usual) {
    if (value != usual) text += fmt::format(":{}={}", key, value);
  };
  add("temperature", options_.temperature, standard.temperature);
  add("gamma", options_.gamma, standard.gamma);
  text += options_.budget > 0 ? fmt::format(":budget={}", options_.budget)
                              : fmt::format(":beta={}", options_.beta);
  text += options_.rho == kNoLimit ? ":rho=all" : fmt::format(":rho={}", options_.rho);
  add("rank", options_.rank, standard.rank);
  add("eta", options_.eta, standard.eta);
  add("kappa", options_.kappa, standard.kappa);
  if (options_.best_first) text += ":best-first=1";
  return text;
}

std::vector<NamedCount> Buddies::counts() const {
  return {{"beta_closed", counts_.beta_closed},   {"tau_closed", counts_.tau_closed},
          {"gamma_closed", counts_.gamma_closed}, {"rho_closed", counts_.rho_closed},
          {"no_list", counts_.no_list},           {"none_resident", counts_.none_resident},
          {"substituted", counts_.substituted}};
}

bool Buddies::PassMayChange(const AskedExperts& asked) const {
  return options_.budget > 0 ? asked.missing < options_.budget
                             : asked.MissingShare() < options_.beta;
}

bool Buddies::TokenMayChange(const RoutedLayer& routed, std::size_t token) {
  const TokenEvenness evenness = EvennessOf(routed.Chosen(token), options_.temperature);
  const double tau =
      options_.tau_by_layer.empty() ? options_.tau : options_.tau_by_layer[routed.layer];
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

void Buddies::Answer(LayerAnswers& layer) {
  const RoutedLayer& routed = layer.routed();
  TROUPE_CHECK(routed.layer < lists_->grid.layers && routed.experts == lists_->grid.experts);
  const AskedExperts asked = CountAsked(layer);
  if (asked.missing == 0) return;
  if (!PassMayChange(asked)) {
    ++counts_.beta_closed;
    return;
  }
  for (std::size_t token = 0; token < layer.tokens(); ++token) {
    if (!HasOpenSlot(layer, token) || !TokenMayChange(routed, token)) continue;
    for (std::uint32_t i = 0; i < routed.top_k; ++i) {
      const std::uint32_t slot = options_.best_first ? i : routed.top_k - 1 - i;
      if (layer.Open(token, slot)) AnswerSlot(layer, token, slot);
    }
  }
}

void Buddies::AnswerSlot(LayerAnswers& layer, std::size_t token, std::uint32_t slot) {
  const RoutedLayer& routed = layer.routed();
  if (layer.Replaced(token) >= options_.rho) {
    ++counts_.rho_closed;
    return;
  }
  const auto list = lists_->Of({routed.layer, routed.Chosen(token)[slot].expert});
  if (list.empty()) {
    ++counts_.no_list;
    return;
  }
  const Buddy* best = nullptr;
  double best_priority = 0;
  for (const Buddy& buddy : list.first(std::min<std::size_t>(list.size(), options_.rank))) {
    if (!layer.Resident(buddy.expert) || !layer.NewTo(token, buddy.expert)) continue;
    double priority = buddy.share;
    if (options_.eta != 0) {
      priority *= 1 + options_.eta * RelativeScore(routed.Scores(token), buddy.expert);
    }
    if (!routed.hops.empty()) priority *= 1 - options_.kappa * routed.hops[buddy.expert];
    if (best != nullptr && priority <= best_priority) continue;
    best = &buddy;
    best_priority = priority;
  }
  if (best == nullptr) {
    ++counts_.none_resident;
    return;
  }
  ++counts_.substituted;
  layer.Substitute(token, slot, best->expert, SubstituteWeight::kOfTheSlot);
}

}  // namespace troupe
