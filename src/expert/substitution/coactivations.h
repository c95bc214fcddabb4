// Counts, a layer at a time, how often each expert is chosen and how often two are chosen for the
// same token: what buddy lists are made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/cache/eviction_policy.h"

namespace troupe {

class Coactivations {
 public:
  static Bytes BytesFor(ExpertGrid grid);

  explicit Coactivations(ExpertGrid grid);

  // A token chose these experts, with these weights (empty: not known). Tokens that say less about
  // what is to come, such as the first of a sequence, may count for less than one.
  void Add(std::uint32_t layer, std::span<const std::uint32_t> experts,
           std::span<const float> weights = {}, double count = 1);

  double Activations(ExpertId id) const { return activations_[grid_.Index(id)]; }
  double Together(std::uint32_t layer, std::uint32_t a, std::uint32_t b) const {
    return together_[Pair(layer, a, b)];
  }
  // The same, a token counting as much as the smaller of the two weights is of all its weights.
  double TogetherWeighted(std::uint32_t layer, std::uint32_t a, std::uint32_t b) const {
    return weighted_[Pair(layer, a, b)];
  }
  ExpertGrid grid() const { return grid_; }

 private:
  static std::size_t PairsOf(ExpertGrid grid) {
    return std::size_t{grid.experts} * (grid.experts - (grid.experts > 0 ? 1 : 0)) / 2;
  }
  std::size_t Pair(std::uint32_t layer, std::uint32_t a, std::uint32_t b) const;

  ExpertGrid grid_;
  std::vector<double> activations_;
  std::vector<double> together_, weighted_;  // a layer after another, each pair once
};

// What a token at this position of its sequence counts for: `least` at the start, rising evenly to
// one at `warm_up`.
double WarmUpCount(std::uint32_t position, std::uint32_t warm_up, double least);

}  // namespace troupe
