// The model's own head (model/next_token_head.h) as a model that guesses for one of its sequences
// (text/draft/draft_model.h). The head reads a token beside the row of the stream that the last
// pass has left of the token before (stream_tail.h); further ahead than the text goes, beside its
// own. Of a long prompt it reads the last rows alone: what it attends to is the end of the text,
// which costs it some guesses and no answer a byte. Threads: one at a time, as for the engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "model/next_token_head.h"
#include "runtime/session.h"
#include "runtime/stream_tail.h"
#include "text/draft/draft_model.h"

namespace troupe {

class HeadDraft final : public DraftSequence {
 public:
  // All must outlive it, unless nothing is asked of it any more. `cache` is of the head and has
  // room for as many tokens as the session.
  HeadDraft(NextTokenHead& head, const Session& session, const StreamTail& tail, KvSequence cache)
      : head_(head), session_(session), tail_(tail), cache_(std::move(cache)) {}

  std::span<const TokenId> tokens() const override { return tokens_; }
  std::size_t most_tokens() const override { return session_.tokens().size() + session_.room(); }
  // Those whose rows are gone, at once; then as many as the head takes together.
  std::size_t most_rows() const override;
  void Truncate(std::size_t length) override;
  Result<std::span<const float>> Feed(std::span<const TokenId> tokens) override;
  // What follows guesses that were fed is known once they are checked.
  void Rest() override;

 private:
  bool KnowsRowBefore(std::size_t position) const {
    return position > tail_.first() && position <= std::min(tail_.end(), text_end());
  }
  std::size_t text_end() const { return session_.tokens().size(); }
  // A token that the head cannot read: it begins anew behind it.
  void Skip(TokenId token);

  NextTokenHead& head_;
  const Session& session_;
  const StreamTail& tail_;
  KvSequence cache_;  // of the tokens from begin_ on
  std::size_t begin_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<float> rows_;  // of a feed, kept for its memory
};

}  // namespace troupe
