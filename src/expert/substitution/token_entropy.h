// How evenly a token's weight lies on its experts (BuddyMoE's token activating entropy, Eq. 1), and
// what share of a layer's tokens lies below a given value, which is how thresholds are found that
// mean the same in every layer and model.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "expert/substitution/routed_layer.h"

namespace troupe {

struct TokenEvenness {
  double entropy = 0;  // 0: all on one expert, 1: the same on all; of a single expert 0
  double margin = 1;   // by which the largest share leads the second
};

// Of the weights' shares; a temperature above 1 evens them out first, as it would the logits of a
// softmax router. The same bits on every machine: a gate that compares them opens for the same
// tokens, on a device too (gpu/buddies.cl).
TokenEvenness EvennessOf(std::span<const ExpertChoice> chosen, double temperature = 1);

// The entropies of a layer's tokens in 1024 steps.
class EntropyHistogram {
 public:
  void Add(double entropy);
  // The largest threshold that at most `share` of the tokens lie below; 0 to 1, in steps.
  double Percentile(double share) const;
  std::uint64_t tokens() const { return tokens_; }

 private:
  static constexpr std::size_t kSteps = 1024;
  std::array<std::uint64_t, kSteps + 1> counts_{};  // [i]: entropies of which i steps are the floor
  std::uint64_t tokens_ = 0;
};

}  // namespace troupe
