#include "runtime/draft_by_residents.h"

#include "base/check.h"

namespace troupe {

// The sequence is the text's, and only a draft's own tokens may go.
void ResidentDraft::Truncate(std::size_t length) {
  TROUPE_CHECK(length >= text_.value_or(session_.tokens().size()));
  session_.Truncate(length);
}

Result<std::span<const float>> ResidentDraft::Feed(std::span<const TokenId> tokens) {
  if (!text_) text_ = session_.tokens().size();
  TROUPE_RETURN_IF_ERROR(session_.FeedByResidents(tokens, request_));
  return session_.logits();
}

void ResidentDraft::Rest() {
  if (text_) session_.Truncate(*text_);
  text_.reset();
}

}  // namespace troupe
