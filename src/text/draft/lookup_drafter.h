// Guesses that a text goes on as it did where its end occurred before, in the prompt or in the
// answer: what an answer copies, edits or quotes. The longest such end decides, and its first
// occurrence.
#pragma once

#include "text/draft/drafter.h"
#include "text/draft/suffix_automaton.h"

namespace troupe {

class LookupDrafter final : public Drafter {
 public:
  // Of a prompt with its answer.
  static Bytes BytesFor(std::size_t tokens) { return SuffixAutomaton::BytesFor(tokens); }

  explicit LookupDrafter(std::size_t tokens = 0) : automaton_(tokens) {}

  DraftSource source() const override { return DraftSource::kLookup; }
  void Append(std::span<const TokenId> tokens, Part part) override;
  // Its evidence is the length of the end that agrees. A text that repeats itself is gone on with
  // beyond its own end.
  Draft Propose(std::size_t most) override;

 private:
  SuffixAutomaton automaton_;
};

}  // namespace troupe
