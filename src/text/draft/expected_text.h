// Guesses that an answer is what somebody said it would be: a weak device whose draft is checked
// here, or a client that knows most of the answer. As soon as it is not, it has nothing to say.
#pragma once

#include <algorithm>
#include <utility>

#include "text/draft/drafter.h"

namespace troupe {

class ExpectedText final : public Drafter {
 public:
  explicit ExpectedText(std::vector<TokenId> answer) : answer_(std::move(answer)) {}

  DraftSource source() const override { return DraftSource::kExpected; }
  void Append(std::span<const TokenId> tokens, Part part) override {
    if (part == Part::kPrompt) return;
    for (const TokenId token : tokens) {
      holds_ = holds_ && at_ < answer_.size() && answer_[at_] == token;
      ++at_;
    }
  }
  Draft Propose(std::size_t most) override {
    if (!holds_ || at_ == answer_.size()) return {};
    const auto rest = std::span(answer_).subspan(at_);
    const auto first = rest.first(std::min(most, rest.size()));
    return {.tokens = {first.begin(), first.end()}, .evidence = at_ + 1};
  }

 private:
  std::vector<TokenId> answer_;
  std::size_t at_ = 0;  // tokens of the answer so far
  bool holds_ = true;   // they were as expected
};

}  // namespace troupe
