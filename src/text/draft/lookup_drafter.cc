#include "text/draft/lookup_drafter.h"

namespace troupe {

void LookupDrafter::Append(std::span<const TokenId> tokens, Part) {
  for (const TokenId token : tokens) automaton_.Append(token);
}

Draft LookupDrafter::Propose(std::size_t most) {
  const SuffixAutomaton::Match match = automaton_.Longest();
  if (match.length == 0) return {};
  Draft draft{.tokens = {}, .evidence = match.length};
  const std::span<const TokenId> text = automaton_.text();
  for (std::size_t at = match.end; draft.tokens.size() < most; ++at) {
    draft.tokens.push_back(at < text.size() ? text[at] : draft.tokens[at - text.size()]);
  }
  return draft;
}

}  // namespace troupe
