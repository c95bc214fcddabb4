// Guesses that an answer goes on as somebody offers while it is being written (offered_draft.h).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "text/draft/drafter.h"
#include "text/draft/offered_draft.h"

namespace troupe {

class OfferedText final : public Drafter {
 public:
  explicit OfferedText(std::shared_ptr<const OfferedDraft> offered)
      : offered_(std::move(offered)) {}

  DraftSource source() const override { return DraftSource::kOffered; }
  void Append(std::span<const TokenId> tokens, Part part) override {
    if (part == Part::kAnswer) answer_.insert(answer_.end(), tokens.begin(), tokens.end());
  }
  // Its evidence is one more than the tokens of the offer that the answer has already.
  Draft Propose(std::size_t most) override { return offered_->After(answer_, most); }

 private:
  std::shared_ptr<const OfferedDraft> offered_;
  std::vector<TokenId> answer_;
};

}  // namespace troupe
