// The rules of requests (troupe/request.h) as constraints over one model's vocabulary. The last few
// are kept compiled, with what was found of them, for requests that come with the same rule.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "text/grammar/grammar.h"
#include "text/grammar/token_constraint.h"
#include "text/tokenizer.h"

namespace troupe {

// kInvalidArgument: the schema or grammar is none, or has a keyword that is not known.
Result<Grammar> GrammarOf(const AnswerRule& rule);

class AnswerRules {
 public:
  // That one of a model with such a vocabulary may come to take, with as many requests at a time.
  static Bytes MostBytes(std::size_t vocabulary, std::uint32_t requests);

  // `marks`: special tokens that are text of the answers that show them.
  explicit AnswerRules(const Tokenizer& tokenizer, std::span<const TokenId> marks = {})
      : vocab_(MakeVocabTrie(tokenizer, marks)) {}

  // Any thread; what it gives is the engine's thread's. Fails as GrammarOf does.
  Result<std::shared_ptr<TokenConstraint>> For(const AnswerRule& rule, bool shows_marks = false);

 private:
  const std::shared_ptr<const VocabTrie> vocab_;
  Mutex mu_;
  // The last one used first.
  std::list<std::pair<AnswerRule, std::shared_ptr<TokenMasks>>> kept_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
