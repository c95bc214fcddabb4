#include "runtime/head_draft.h"

#include <algorithm>

namespace troupe {

std::size_t HeadDraft::most_rows() const {
  const std::size_t unknown = tail_.first() + 1;
  return NextTokenHead::kMostRows + (unknown > tokens_.size() ? unknown - tokens_.size() : 0);
}

void HeadDraft::Truncate(std::size_t length) {
  tokens_.resize(std::min(length, tokens_.size()));
  begin_ = std::min(begin_, tokens_.size());
  cache_.Truncate(tokens_.size() - begin_);
}

void HeadDraft::Skip(TokenId token) {
  tokens_.push_back(token);
  cache_.Truncate(0);
  begin_ = tokens_.size();
}

Result<std::span<const float>> HeadDraft::Feed(std::span<const TokenId> tokens) {
  while (!tokens.empty() && tokens_.size() <= text_end() && !KnowsRowBefore(tokens_.size())) {
    Skip(tokens.front());
    tokens = tokens.subspan(1);
  }
  if (tokens.empty()) return std::span<const float>();
  rows_.clear();
  for (std::size_t at = tokens_.size(); at < tokens_.size() + tokens.size(); ++at) {
    const bool is_text = KnowsRowBefore(at);
    // Behind a guess there is one row, the head's own of the token before.
    TROUPE_CHECK(is_text || (tokens.size() == 1 && cache_.length() > 0));
    const std::span<const float> row = is_text ? tail_.Row(at - 1) : head_.LastRow();
    rows_.insert(rows_.end(), row.begin(), row.end());
  }
  TROUPE_RETURN_IF_ERROR(head_.Forward(cache_, tokens, rows_));
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return head_.Logits();
}

void HeadDraft::Rest() { Truncate(std::min(tokens_.size(), text_end() + 1)); }

}  // namespace troupe
