// DRY ("don't repeat yourself"): makes a token less likely the longer the text before it repeats
// what stood before that token earlier. By p-e-w (text-generation-webui, pull request 5677), as
// llama.cpp has it, but that a breaker is any token whose text contains one of the breakers' texts.
// Pure; basic IEEE operations alone, so that it is the same on every machine.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/token_set.h"
#include "text/tokenizer.h"

namespace troupe {

class DryPenalty {
 public:
  // `breakers`: tokens that end a repetition, and are never made less likely.
  DryPenalty(const DryOptions& options, TokenSet breakers)
      : options_(options), breakers_(std::move(breakers)) {}

  // The next token of the text.
  void Accept(TokenId token);
  // What is to be subtracted from the logits, by token.
  std::unordered_map<TokenId, float> Penalties() const;

 private:
  double PenaltyOf(std::size_t repeated) const;

  DryOptions options_;
  TokenSet breakers_;
  std::vector<TokenId> text_;
};

// Of DryOptions that name none.
std::vector<std::string> UsualBreakers();
// The tokens that contain one of the texts.
TokenSet TokensWith(const Tokenizer& tokenizer, std::span<const std::string> texts);

}  // namespace troupe
