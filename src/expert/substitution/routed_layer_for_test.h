// For tests: layers with their storage, made from scores the way a router makes them, by hand or
// drawn at random.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "expert/substitution/substitution_chain.h"

namespace troupe {

struct LayerForTest {
  std::uint32_t layer = 0, experts = 0, top_k = 0;
  bool normalised = false;
  std::vector<float> scores;
  std::vector<ExpertChoice> chosen;
  std::vector<Residence> residence;
  std::vector<std::uint8_t> low_bit;

  RoutedLayer View() const {
    return {.layer = layer,
            .experts = experts,
            .top_k = top_k,
            .normalised = normalised,
            .chosen = chosen,
            .scores = scores,
            .residence = residence,
            .low_bit = low_bit};
  }
  std::size_t tokens() const { return chosen.size() / top_k; }
  bool Resident(std::uint32_t e) const { return residence[e] == Residence::kResident; }
};

// The best top_k of each row of scores, ties to the lowest index.
inline LayerForTest RoutedByScores(const std::vector<std::vector<float>>& rows, std::uint32_t top_k,
                                   std::vector<std::uint32_t> resident, bool normalised = false) {
  LayerForTest made;
  made.experts = static_cast<std::uint32_t>(rows[0].size());
  made.top_k = top_k;
  made.normalised = normalised;
  made.residence.assign(made.experts, Residence::kAbsent);
  for (const std::uint32_t e : resident) made.residence[e] = Residence::kResident;
  for (const std::vector<float>& row : rows) {
    made.scores.insert(made.scores.end(), row.begin(), row.end());
    std::vector<std::uint32_t> order(made.experts);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, std::greater<>(), [&](std::uint32_t e) { return row[e]; });
    float sum = 0;
    for (std::uint32_t slot = 0; slot < top_k; ++slot) sum += row[order[slot]];
    for (std::uint32_t slot = 0; slot < top_k; ++slot) {
      const float score = row[order[slot]];
      made.chosen.push_back({order[slot], normalised ? score / sum : score});
    }
  }
  return made;
}

// 1 to 3 tokens, 4 to 12 experts of which some are resident, some on their way; scores that are
// sometimes equal.
inline LayerForTest RandomLayer(Rng& rng) {
  const auto experts = static_cast<std::uint32_t>(4 + rng.Below(9));
  const auto top_k = static_cast<std::uint32_t>(1 + rng.Below(std::min(experts, 6u)));
  std::vector<std::vector<float>> rows(1 + rng.Below(3), std::vector<float>(experts));
  const bool coarse = rng.Below(3) == 0;
  for (auto& row : rows) {
    for (float& score : row) {
      score = coarse ? static_cast<float>(1 + rng.Below(4)) / 16
                     : static_cast<float>(rng.Uniform() * rng.Uniform());
    }
  }
  LayerForTest made = RoutedByScores(rows, top_k, {}, rng.Below(2) == 0);
  for (Residence& residence : made.residence) {
    const std::uint64_t kind = rng.Below(5);
    residence = kind < 2    ? Residence::kResident
                : kind == 2 ? Residence::kLoading
                            : Residence::kAbsent;
  }
  made.low_bit.resize(experts);
  for (std::uint8_t& copy : made.low_bit) copy = static_cast<std::uint8_t>(rng.Below(2));
  return made;
}

// A chain of one policy that has a say in every pass.
template <typename Policy, typename... Args>
SubstitutionChain ChainOf(Args&&... args) {
  std::vector<std::unique_ptr<SubstitutionPolicy>> links;
  links.push_back(std::make_unique<Policy>(std::forward<Args>(args)...));
  return SubstitutionChain(std::move(links));
}

inline std::vector<std::uint32_t> ExpertsOf(std::span<const SlotAnswer> answers) {
  std::vector<std::uint32_t> experts;
  for (const SlotAnswer& answer : answers) experts.push_back(answer.expert);
  return experts;
}

inline std::vector<SlotAnswer> AllKept(const LayerForTest& layer) {
  std::vector<SlotAnswer> answers;
  for (const ExpertChoice& slot : layer.chosen) answers.push_back({slot.expert, slot.weight});
  return answers;
}

}  // namespace troupe
