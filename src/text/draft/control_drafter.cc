#include "text/draft/control_drafter.h"

#include <algorithm>

namespace troupe {

void ControlDrafter::Append(std::span<const TokenId> tokens, Part) {
  const std::size_t left = kRemembered - std::min(kRemembered, seen_.size());
  const auto first = tokens.first(std::min(left, tokens.size()));
  seen_.insert(seen_.end(), first.begin(), first.end());
}

Draft ControlDrafter::Propose(std::size_t most) {
  if (seen_.empty()) return {};
  Draft draft{.tokens = {}, .evidence = kSure};
  while (draft.tokens.size() < most) {
    const std::size_t at = kind_ == Kind::kWrong ? 0 : rng_.Below(seen_.size());
    draft.tokens.push_back(seen_[at]);
  }
  return draft;
}

}  // namespace troupe
