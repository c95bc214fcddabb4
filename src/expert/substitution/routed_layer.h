// What a layer's router said of the tokens of a pass, and what of it is in memory: the facts that
// substitution policies decide by. Views; who calls owns what they point to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/expert_choice.h"
#include "expert/cache/expert_cache.h"

namespace troupe {

struct RoutedLayer {
  std::uint32_t layer = 0;
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;
  bool normalised = false;               // the model divides a token's weights by their sum
  std::span<const ExpertChoice> chosen;  // [token][slot]: best first, different experts
  std::span<const float> scores;         // [token][expert], none negative; empty: not known
  std::span<const Residence> residence;  // [expert]
  std::span<const std::uint8_t> low_bit =
      {};  // [expert], 1: has a copy of fewer bits; may be empty

  std::size_t tokens() const { return top_k == 0 ? 0 : chosen.size() / top_k; }
  std::span<const ExpertChoice> Chosen(std::size_t token) const {
    return chosen.subspan(token * top_k, top_k);
  }
  // Empty where scores are not known.
  std::span<const float> Scores(std::size_t token) const {
    return scores.empty() ? scores : scores.subspan(token * experts, experts);
  }
};

}  // namespace troupe
