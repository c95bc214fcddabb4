// For tests and benchmarks: what the policy of buddies is given, in the form in which a device
// takes it (gpu/buddies.h).
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "expert/substitution/buddies.h"
#include "expert/substitution/routed_layer_for_test.h"
#include "gpu/buddies.h"

namespace troupe {

inline GpuBuddyRules RulesFor(const Buddies::Options& options, std::uint32_t layer = 0) {
  const SubstitutionGates::Options& gates = options.gates;
  return {.tau = gates.tau_by_layer.empty() ? gates.tau : gates.tau_by_layer[layer],
          .temperature = gates.temperature,
          .gamma = gates.gamma,
          .beta = gates.beta,
          .budget = gates.budget,
          .rho = options.rho,
          .rank = options.rank,
          .eta = options.eta,
          .best_first = options.best_first};
}

inline GpuBuddyLists ListsFor(const BuddyLists& lists) {
  GpuBuddyLists flat{.begins = {0}};
  for (const std::vector<Buddy>& list : lists.lists) {
    for (const Buddy& buddy : list) {
      flat.experts.push_back(buddy.expert);
      flat.shares.push_back(buddy.share);
    }
    flat.begins.push_back(static_cast<std::uint32_t>(flat.experts.size()));
  }
  return flat;
}

// A layer's choice with its storage.
struct RoutedForCard {
  std::uint32_t layer = 0, experts = 0, top_k = 0;
  std::vector<std::uint32_t> chosen;
  std::vector<float> weights, scores;
  std::vector<std::uint32_t> resident, missing;

  explicit RoutedForCard(const LayerForTest& from)
      : layer(from.layer), experts(from.experts), top_k(from.top_k), scores(from.scores) {
    for (const ExpertChoice& choice : from.chosen) {
      chosen.push_back(choice.expert);
      weights.push_back(choice.weight);
    }
    resident.resize((experts + 31) / 32);
    missing.resize(resident.size());
    for (std::uint32_t e = 0; e < experts; ++e) {
      if (from.residence[e] == Residence::kResident) resident[e / 32] |= 1u << (e % 32);
      if (from.residence[e] == Residence::kAbsent) missing[e / 32] |= 1u << (e % 32);
    }
  }
  GpuRoutedTokens View() const {
    return {.layer = layer,
            .experts = experts,
            .top_k = top_k,
            .tokens = static_cast<std::uint32_t>(chosen.size() / top_k),
            .chosen = chosen,
            .weights = weights,
            .scores = scores,
            .resident = resident,
            .missing = missing};
  }
};

// Tokens of a router that likes some experts, `missing` in 256 of which are not in memory.
inline LayerForTest RoutedTokens(Rng& rng, std::uint32_t experts, std::uint32_t top_k,
                                 std::uint32_t tokens, std::uint64_t missing) {
  std::vector<std::vector<float>> rows(tokens, std::vector<float>(experts));
  for (auto& row : rows) {
    for (float& score : row) score = static_cast<float>(rng.Uniform() * rng.Uniform());
  }
  LayerForTest made = RoutedByScores(rows, top_k, {}, /*normalised=*/true);
  for (Residence& residence : made.residence) {
    const std::uint64_t kind = rng.Below(256);
    residence = kind < missing        ? Residence::kAbsent
                : kind < missing + 16 ? Residence::kLoading
                                      : Residence::kResident;
  }
  return made;
}

// Lists as of a calibration, of experts that met at random.
inline std::shared_ptr<const BuddyLists> RandomBuddies(Rng& rng, std::uint32_t experts,
                                                       std::uint32_t top_k, int tokens) {
  Coactivations counts({.layers = 1, .experts = experts});
  for (int token = 0; token < tokens; ++token) {
    std::vector<std::uint32_t> order(experts);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), rng);
    order.resize(top_k);
    counts.Add(0, order);
  }
  return std::make_shared<const BuddyLists>(MakeBuddyLists(counts));
}

}  // namespace troupe
