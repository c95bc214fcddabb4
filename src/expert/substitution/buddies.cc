#include "expert/substitution/buddies.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"

namespace troupe {
namespace {

// The token's own score of an expert as a share of its highest.
double RelativeScore(std::span<const float> scores, std::uint32_t expert) {
  if (scores.empty()) return 0;
  const float most = std::ranges::max(scores);
  return most > 0 ? double{scores[expert]} / most : 0;
}

}  // namespace

Buddies::Buddies(std::shared_ptr<const BuddyLists> lists, Options options)
    : lists_(std::move(lists)), options_(std::move(options)), gates_(options_.gates) {
  TROUPE_CHECK(lists_ != nullptr);
  const std::vector<double>& tau = options_.gates.tau_by_layer;
  TROUPE_CHECK(tau.empty() || tau.size() == lists_->grid.layers);
}

std::string Buddies::ToString() const {
  const Options standard;
  std::string text = "buddies" + gates_.ToString(/*tau_and_beta=*/true);
  const auto add = [&](std::string_view key, auto value, auto usual) {
    if (value != usual) text += fmt::format(":{}={}", key, value);
  };
  text += options_.rho == kNoLimit ? ":rho=all" : fmt::format(":rho={}", options_.rho);
  add("rank", options_.rank, standard.rank);
  add("eta", options_.eta, standard.eta);
  if (options_.best_first) text += ":best-first=1";
  return text;
}

std::vector<NamedCount> Buddies::counts() const {
  std::vector<NamedCount> counts;
  gates_.AddCounts(counts);
  counts.push_back({"rho_closed", counts_.rho_closed});
  counts.push_back({"no_list", counts_.no_list});
  counts.push_back({"none_resident", counts_.none_resident});
  counts.push_back({"substituted", counts_.substituted});
  return counts;
}

void Buddies::Answer(LayerAnswers& layer) {
  const RoutedLayer& routed = layer.routed();
  TROUPE_CHECK(routed.layer < lists_->grid.layers && routed.experts == lists_->grid.experts);
  const AskedExperts asked = CountAsked(layer);
  if (asked.missing == 0 || !gates_.PassMayChange(asked)) return;
  for (std::size_t token = 0; token < layer.tokens(); ++token) {
    if (!layer.HasOpen(token) || !gates_.TokenMayChange(routed, token)) continue;
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
