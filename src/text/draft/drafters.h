// Which drafters a run has, by the name of --speculate.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/draft/drafter.h"
#include "text/grammar/token_constraint.h"

namespace troupe {

struct DraftChoice {
  bool lookup = false;
  bool grammar = false;
  bool wrong = false, random = false;  // controls
  bool model = false;                  // where there is a draft model (draft_model.h)
  bool resident = false;               // the model itself, by the experts in memory alone
  bool heads = false;                  // where the model has one that guesses further tokens

  bool any() const { return lookup || grammar || wrong || random || model || resident || heads; }
  bool operator==(const DraftChoice&) const = default;
};

// "auto" (all but the controls and "resident"), "off", "lookup", "grammar", "draft" (a draft
// model), "heads" (the model's own), "resident", and the controls "wrong" and "random".
// kInvalidArgument names the others.
Result<DraftChoice> ParseDraftChoice(std::string_view name);
std::vector<std::string> DraftChoiceNames();

// Of one answer, without those that run a model. `tokens`: of its prompt and
// itself, at most. The constraint is the one it follows, or null.
std::vector<std::unique_ptr<Drafter>> MakeDrafters(
    const DraftChoice& choice, std::size_t tokens,
    const std::shared_ptr<const TokenConstraint>& constraint);
// Memory that they take.
Bytes DrafterBytes(const DraftChoice& choice, std::size_t tokens);

}  // namespace troupe
