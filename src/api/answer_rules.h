// The rules of requests (troupe/request.h) as constraints over one model's vocabulary. All rules of
// a model share memory of a fixed size: those in use are there, and those that were used stay, with
// what was found of them, until others want their room. Why so much: docs/design/server.md.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "text/grammar/grammar.h"
#include "text/grammar/token_constraint.h"
#include "text/tokenizer.h"

namespace troupe {

// kInvalidArgument: the schema or grammar is none, or has a keyword that is not known.
Result<Grammar> GrammarOf(const AnswerRule& rule);

struct AnswerRuleLimits {
  Bytes rules = 8_MiB;         // compiled, of all requests that run or wait, and those kept
  Bytes found = 8_MiB;         // the tokens that may come at places of all of them
  Bytes while_found = 16_MiB;  // beside these, while a place is looked at
  Bytes each = 1_MiB;          // where one request stands in its rule
};

class AnswerRules {
 public:
  // That one of a model with such a vocabulary may come to take, with as many requests at a time.
  static Bytes MostBytes(std::size_t vocabulary, std::uint32_t requests);

  // `marks`: special tokens that are text of the answers that show them.
  explicit AnswerRules(const Tokenizer& tokenizer, std::span<const TokenId> marks = {},
                       const AnswerRuleLimits& limits = {});

  // Any thread; what it gives is the engine's thread's. Fails as GrammarOf does; kInvalidArgument
  // as well for a rule larger than all the room, and kUnavailable with a time to come again if
  // requests under way have taken it.
  Result<std::shared_ptr<TokenConstraint>> For(const AnswerRule& rule, bool shows_marks = false);

  std::size_t kept() const;  // rules that are compiled
  Bytes rule_bytes() const;  // that they take

 private:
  struct Compiled {
    AnswerRule rule;
    std::shared_ptr<TokenMasks> masks;
    Bytes size;
  };

  std::shared_ptr<TokenMasks> Find(const AnswerRule& rule) TROUPE_REQUIRES(mu_);
  // Drops rules that no request uses, those that were not used for longest first.
  bool MakeRoom(Bytes size) TROUPE_REQUIRES(mu_);

  const std::shared_ptr<const VocabTrie> vocab_;
  const AnswerRuleLimits limits_;
  const std::shared_ptr<MaskMemory> found_;
  mutable Mutex mu_;
  std::list<Compiled> compiled_ TROUPE_GUARDED_BY(mu_);  // the last one used first
  Bytes used_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
