// BuddyMoE's gates (Wang et al., section 3.1): which tokens of which passes may be answered lossily
// at all. A token may that spreads its weight (tau, gamma), in a pass that does not miss too much
// (beta). Buddies and the controls stand behind the same code, so that they can be compared at the
// same gates.
#pragma once

#include <string>
#include <vector>

#include "expert/substitution/substitution_policy.h"

namespace troupe {

// The different experts that a pass asks a layer for.
struct AskedExperts {
  std::uint32_t all = 0, missing = 0;

  double MissingShare() const {
    return all == 0 ? 0 : static_cast<double>(missing) / all;
  }  // delta, Eq. 2
};
AskedExperts CountAsked(const LayerAnswers& layer);

class SubstitutionGates {
 public:
  // All open.
  struct Options {
    double tau = -1;                        // only tokens of more entropy; 1: none
    std::vector<double> tau_by_layer = {};  // instead of tau; empty: the same everywhere
    double temperature = 1;
    double gamma = 2;   // not tokens whose first leads by so much; 2: all
    double beta = 1.5;  // not passes that miss such a share of their experts; above 1: all
    // Instead of beta: not passes of which a layer misses at most this number of experts, which
    // may be transferred for it; 0: beta decides.
    std::uint32_t budget = 0;
  };
  struct Counts {
    std::uint64_t beta_closed = 0;   // layers of passes
    std::uint64_t tau_closed = 0;    // tokens
    std::uint64_t gamma_closed = 0;  // tokens that tau let pass

    bool operator==(const Counts&) const = default;
  };

  explicit SubstitutionGates(Options options);

  // Both count what they close. A token is asked about where it has something to answer.
  bool PassMayChange(const AskedExperts& asked);
  bool TokenMayChange(const RoutedLayer& routed, std::size_t token);

  // ":tau=0.2:beta=0.9", as ParseSubstitution reads it: what is not open, or `tau_and_beta` anyway.
  std::string ToString(bool tau_and_beta = false) const;
  void AddCounts(std::vector<NamedCount>& counts) const;
  const Options& options() const { return options_; }
  const Counts& count() const { return counts_; }

 private:
  Options options_;
  Counts counts_;
};

}  // namespace troupe
