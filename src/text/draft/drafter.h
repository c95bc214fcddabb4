// Guesses the next tokens of a text, so that a pass can check several at once: what is right needs
// no pass of its own. A guess never changes an answer, it decides only when tokens are computed.
// One file a drafter. Which guesses are worth a check is expert/flow/draft_governor.h's to say.
// Pure.
#pragma once

#include <troupe/usage.h>

#include <cstddef>
#include <span>
#include <vector>

#include "text/vocab.h"

namespace troupe {

struct Draft {
  std::vector<TokenId> tokens;
  // How much speaks for it, comparable within a source only: tokens that agreed before.
  std::size_t evidence = 0;
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual DraftSource source() const = 0;  // how well each does is measured apart

  // The text goes on with these tokens: of the prompt, then of the answer.
  enum class Part { kPrompt, kAnswer };
  virtual void Append(std::span<const TokenId> tokens, Part part) = 0;

  // What may follow, `most` tokens at most; no tokens if it has no idea.
  virtual Draft Propose(std::size_t most) = 0;
};

}  // namespace troupe
