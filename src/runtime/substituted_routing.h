// Between a layer's router and its questions for experts: shows a chain of substitution policies
// what was chosen and what is in memory, and writes their answers into the choice. What they decide
// by is expert/substitution's business; loading what they leave open is offloaded_experts.h's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/cache/expert_cache.h"
#include "expert/substitution/substitution_chain.h"
#include "kernels/top_experts.h"

namespace troupe {

// Of a model, what policies have to know.
struct RoutingFacts {
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;
  bool normalised = false;  // a token's weights are divided by their sum
  bool low_copies = false;  // every expert has one
};

class SubstitutedRouting {
 public:
  struct Changes {
    std::uint32_t substituted = 0;  // slots
    std::uint32_t dropped = 0;
  };

  SubstitutedRouting(SubstitutionChain chain, const RoutingFacts& facts);

  // Whether the chain has a say in a pass of so many tokens.
  bool AppliesTo(std::size_t tokens) const { return tokens <= chain_.limits().most_tokens; }

  // `chosen` as the router left it, top_k slots a token; afterwards as the slots are answered.
  Changes Answer(std::uint32_t layer, const ExpertCache& cache, std::span<const float> scores,
                 std::span<ExpertChoice> chosen);

  // What the router of that layer chose, by expert: what an eviction policy learns by.
  std::span<const ExpertDemand> routed() const { return routed_; }
  // The least copy that the answers are content with.
  ExpertCopy Least(std::uint32_t expert) const { return least_[expert]; }
  const SubstitutionChain& chain() const { return chain_; }

 private:
  void NoteRouted(std::span<const ExpertChoice> chosen);

  SubstitutionChain chain_;
  RoutingFacts facts_;
  std::vector<RoutedSlot> slots_;
  std::vector<Residence> residence_;    // [expert], of full copies
  std::vector<std::uint8_t> low_bit_;   // [expert], or empty
  std::vector<std::uint32_t> choices_;  // [expert]
  std::vector<ExpertDemand> routed_;
  std::vector<ExpertCopy> least_;  // [expert]
};

}  // namespace troupe
