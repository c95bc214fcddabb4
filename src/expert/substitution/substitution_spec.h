// Chains of substitution policies written as text, for command lines, sweeps and reports:
// "smoe:alpha=0.3+drop:most-share=0.05" is SMoE's router, then dropping what is light. "exact" is
// the chain without links. What ToString prints is read again as the same chain.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "expert/substitution/buddies.h"
#include "expert/substitution/substitution_chain.h"

namespace troupe {

// What some policies need beyond their options; null where there is none.
struct SubstitutionMaterial {
  std::shared_ptr<const BuddyLists> buddies;
  std::vector<double> tau_by_layer;  // for tau=layers
};

Result<SubstitutionChain> ParseSubstitution(std::string_view text,
                                            const SubstitutionMaterial& material = {},
                                            const SubstitutionLimits& limits = {});

// Whether a chain cannot be read without what calibration made: lists, or a tau for each layer.
bool NeedsBuddies(std::string_view text);

// Every policy with its options and what they mean, a line each.
std::string SubstitutionHelp();

}  // namespace troupe
