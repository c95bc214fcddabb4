// Guesses the text that a rule forces: where a grammar allows one byte alone, that byte comes, and
// after it maybe others. Which tokens say them is the model's choice; the longest ones are likely.
#pragma once

#include <memory>
#include <utility>

#include "text/draft/drafter.h"
#include "text/grammar/token_constraint.h"

namespace troupe {

class GrammarDrafter final : public Drafter {
 public:
  // The constraint that the answer follows: it is asked where it stands, and moved by others.
  explicit GrammarDrafter(std::shared_ptr<const TokenConstraint> constraint)
      : constraint_(std::move(constraint)) {}

  DraftSource source() const override { return DraftSource::kGrammar; }
  void Append(std::span<const TokenId>, Part) override {}
  // Its evidence is the number of its tokens' bytes.
  Draft Propose(std::size_t most) override;

 private:
  std::shared_ptr<const TokenConstraint> constraint_;
};

}  // namespace troupe
