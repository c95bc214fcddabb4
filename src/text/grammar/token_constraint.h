// A grammar at work on one answer: which tokens may come next, and where the answer stands. What a
// sampler is asked with (text/sampler.h). Several constraints may share one TokenMasks, one after
// the other.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "text/grammar/matcher.h"
#include "text/grammar/token_mask.h"
#include "text/token_set.h"

namespace troupe {

class TokenConstraint {
 public:
  // `with_marks`: special tokens whose text the vocabulary's tree has are text of this answer.
  // `name`: what errors begin with.
  explicit TokenConstraint(std::shared_ptr<TokenMasks> masks, bool with_marks = false,
                           std::string name = "grammar");

  // The tokens with which the answer may go on, and the end tokens where it may end. Valid until
  // the next Advance. Fails if the grammar takes too much work here, or if no token of the
  // vocabulary fits.
  Result<const TokenSet*> Allowed();

  // Takes a token of the answer. kInvalidArgument if it is not allowed; the constraint stays as it
  // is.
  Status Advance(TokenId token);

  // The bytes that come next in any case, `most` at most: where one alone is allowed, and the
  // answer cannot end. Moves nothing.
  std::string ForcedText(std::size_t most) const;
  const VocabTrie& vocab() const { return *masks_->vocab(); }

  Result<bool> CanEnd() { return Named(matcher_.CanEnd()); }
  Result<bool> IsDone() { return Named(matcher_.IsDone()); }

 private:
  template <typename T>
  Result<T> Named(Result<T> found) const {
    if (found.ok()) return found;
    return Status(found.status()).WithContext(name_);
  }

  std::shared_ptr<TokenMasks> masks_;
  Matcher matcher_;
  std::string name_;
  bool with_marks_;
  TokenSet allowed_;
  bool allowed_is_known_ = false;
};

}  // namespace troupe
