#include "expert/forecast/activation_path.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "expert/forecast/gate_guesses.h"

namespace troupe {

ActivationPath::ActivationPath(ExpertGrid grid, std::uint32_t experts_per_token,
                               std::span<const SeenPaths> seen)
    : grid_(grid), experts_per_token_(experts_per_token), follows_(grid.Count() * grid.experts) {
  for (const SeenPaths& one : seen) {
    if (one.layer >= grid.layers || one.follows.size() != LayerSize()) continue;
    std::ranges::copy(one.follows, &Follows(one.layer, 0, 0));
  }
}

void ActivationPath::CountPaths(std::uint32_t layer, std::span<const ExpertDemand> before,
                                std::span<const ExpertDemand> after) {
  for (const ExpertDemand& from : before) {
    for (const ExpertDemand& to : after) {
      // Of several tokens it is not known which went from here to there; their counts stand in.
      Follows(layer, from.expert, to.expert) +=
          static_cast<float>(std::min(from.tokens, to.tokens));
    }
  }
}

void ActivationPath::OnChosen(const LayerChoices& chosen) {
  const bool follows = chosen.layer() > 0 && last_layer_ + 1 == chosen.layer();
  for (const SequenceDemands& now : chosen.by_sequence()) {
    const auto before = std::ranges::find(last_by_sequence_, now.sequence, &OfSequence::sequence);
    if (follows && before != last_by_sequence_.end()) {
      CountPaths(chosen.layer(), before->demands, now.demands);
    }
  }
  last_.assign(chosen.demands().begin(), chosen.demands().end());
  last_by_sequence_.resize(chosen.by_sequence().size());
  for (std::size_t i = 0; i < chosen.by_sequence().size(); ++i) {
    const SequenceDemands& now = chosen.by_sequence()[i];
    last_by_sequence_[i].sequence = now.sequence;
    last_by_sequence_[i].demands.assign(now.demands.begin(), now.demands.end());
  }
  last_layer_ = chosen.layer();
}

std::vector<Guess> ActivationPath::Predict(std::uint32_t layer, std::uint32_t, const GateScores&) {
  if (layer == 0 || last_layer_ + 1 != layer) return {};
  std::vector<float> weights(grid_.experts);
  std::uint32_t tokens = 0;
  for (const ExpertDemand& before : last_) {
    tokens = std::max(tokens, before.tokens);
    const std::span<const float> row(&Follows(layer, before.expert, 0), grid_.experts);
    const float all = std::accumulate(row.begin(), row.end(), 0.0f);
    if (all == 0) continue;  // never seen before
    for (std::uint32_t after = 0; after < grid_.experts; ++after) {
      weights[after] += static_cast<float>(before.tokens) * row[after] / all;
    }
  }
  std::vector<std::uint32_t> order(grid_.experts);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t e) { return weights[e]; });
  const float quartile = UpperQuartile(weights, order);
  const std::size_t expected = std::size_t{experts_per_token_} * std::max(1u, tokens);
  std::vector<Guess> guesses;
  for (const std::uint32_t after : order) {
    const bool is_expected = guesses.size() < expected;
    // Nearly every expert has followed at some time; a list of them all would keep all that is in
    // memory there, and leave no room for what is loaded by it.
    if (weights[after] == 0 || (!is_expected && weights[after] <= quartile)) break;
    guesses.push_back({.expert = after, .weight = weights[after], .expected = is_expected});
  }
  return guesses;
}

std::vector<double> UsesIn(std::span<const SeenPaths> seen, ExpertGrid grid) {
  std::vector<double> uses(grid.Count());
  const auto is_seen = [&](std::uint32_t layer) {
    return std::ranges::find(seen, layer, &SeenPaths::layer) != seen.end();
  };
  for (const SeenPaths& one : seen) {
    if (one.layer == 0 || one.layer >= grid.layers) continue;
    if (one.follows.size() != std::size_t{grid.experts} * grid.experts) continue;
    const bool tells_before = !is_seen(one.layer - 1);
    for (std::uint32_t before = 0; before < grid.experts; ++before) {
      for (std::uint32_t after = 0; after < grid.experts; ++after) {
        const float count = one.follows[std::size_t{before} * grid.experts + after];
        uses[grid.Index({.layer = one.layer, .expert = after})] += count;
        if (tells_before) uses[grid.Index({.layer = one.layer - 1, .expert = before})] += count;
      }
    }
  }
  return uses;
}

std::vector<SeenPaths> ActivationPath::Seen() const {
  std::vector<SeenPaths> seen;
  for (std::uint32_t layer = 0; layer < grid_.layers; ++layer) {
    const auto counts = std::span(follows_).subspan(layer * LayerSize(), LayerSize());
    if (std::ranges::all_of(counts, [](float count) { return count == 0; })) continue;
    seen.push_back({.layer = layer, .follows = {counts.begin(), counts.end()}});
  }
  return seen;
}

}  // namespace troupe
