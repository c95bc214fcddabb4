// Between a layer's router and its demands: shows a chain of substitution policies what the rows
// that need not be exact chose and what is in memory, and writes their answers into the choice.
// The policies are expert/substitution's; loading what they leave open is miss_flow.h's part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/expert_choice.h"
#include "expert/cache/expert_cache.h"
#include "expert/pass_facts.h"
#include "expert/substitution/substitution_chain.h"

namespace troupe {

// What policies have to know of a model.
struct RoutingFacts {
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;
  bool normalised = false;  // a token's weights are divided by their sum
  bool low_copies = false;  // every expert has one
};

// Slots of rows that were not answered as the router chose.
struct RoutingChanges {
  std::uint32_t substituted = 0;
  std::uint32_t dropped = 0;
};

class SubstitutedRouting {
 public:
  SubstitutedRouting(SubstitutionChain chain, const RoutingFacts& facts);

  // Whether the chain has a say in the pass: in its decode rows that need not be exact, unless it
  // decodes more rows than the chain allows.
  bool AppliesTo(const PassFacts& pass) const;

  // `chosen` as the router left it, top_k slots a row; afterwards as the slots are answered. Rows
  // of prompts and exact rows stay as they are. What they load counts as under way for the others.
  std::span<const RoutingChanges> Answer(std::uint32_t layer, const PassFacts& pass,
                                         const ExpertCache& cache, std::span<const float> scores,
                                         std::span<ExpertChoice> chosen);  // by group

  // The least copy that the rows which the chain answered are content with.
  ExpertCopy Least(std::uint32_t expert) const { return least_[expert]; }
  const SubstitutionChain& chain() const { return chain_; }

 private:
  void NoteResidence(std::uint32_t layer, const ExpertCache& cache);
  // Copies the rows that may change; marks what the others need.
  void Gather(const PassFacts& pass, std::span<const float> scores,
              std::span<const ExpertChoice> chosen);

  SubstitutionChain chain_;
  RoutingFacts facts_;
  std::vector<ExpertChoice> slots_;  // of the rows that may change
  std::vector<float> scores_;
  std::vector<Residence> residence_;   // [expert], of full copies
  std::vector<std::uint8_t> low_bit_;  // [expert], or empty
  std::vector<ExpertCopy> least_;      // [expert]
  std::vector<RoutingChanges> changes_;
};

}  // namespace troupe
