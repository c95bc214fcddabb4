#include "expert/substitution/buddies.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace troupe {
namespace {

template <typename T>
T OfLayer(const std::vector<T>& by_layer, T everywhere, std::uint32_t layer) {
  return by_layer.empty() ? everywhere : by_layer[layer];
}

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

double MissingShare(const LayerAnswers& layer) {
  std::vector<bool> asked(layer.routed().experts);
  std::size_t all = 0, missing = 0;
  for (const RoutedSlot& slot : layer.routed().chosen) {
    if (asked[slot.expert]) continue;
    asked[slot.expert] = true;
    ++all;
    missing += layer.Missing(slot.expert) ? 1 : 0;
  }
  return all == 0 ? 0 : static_cast<double>(missing) / static_cast<double>(all);
}

double BetaOfBudget(Bytes budget, Bytes expert, double experts_asked) {
  TROUPE_CHECK(expert.count() > 0 && experts_asked > 0);
  const double fits = static_cast<double>(budget.count()) / static_cast<double>(expert.count());
  return std::min(1.0, fits / experts_asked);
}

Buddies::Buddies(std::shared_ptr<const BuddyLists> lists, Options options)
    : lists_(std::move(lists)), options_(std::move(options)) {
  TROUPE_CHECK(lists_ != nullptr && options_.temperature > 0);
  const std::size_t layers = lists_->grid.layers;
  TROUPE_CHECK(options_.tau_by_layer.empty() || options_.tau_by_layer.size() == layers);
  TROUPE_CHECK(options_.rho_by_layer.empty() || options_.rho_by_layer.size() == layers);
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
  text += fmt::format(":beta={}", options_.beta);
  if (!options_.rho_by_layer.empty()) {
    text += ":rho=layers";
  } else if (options_.rho == kNoLimit) {
    text += ":rho=all";
  } else {
    text += fmt::format(":rho={}", options_.rho);
  }
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

bool Buddies::TokenMayChange(const RoutedLayer& routed, std::size_t token) {
  const TokenEvenness evenness = EvennessOf(routed.Chosen(token), options_.temperature);
  if (evenness.entropy <= OfLayer(options_.tau_by_layer, options_.tau, routed.layer)) {
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
  const double missing = MissingShare(layer);
  if (missing == 0) return;
  if (missing >= options_.beta) {
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
  if (layer.Replaced(token) >= OfLayer(options_.rho_by_layer, options_.rho, routed.layer)) {
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
