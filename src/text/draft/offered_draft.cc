#include "text/draft/offered_draft.h"

#include <algorithm>
#include <utility>

namespace troupe {

void OfferedDraft::Offer(std::uint64_t number, std::size_t from, std::vector<TokenId> tokens) {
  const MutexLock lock(mu_);
  if (number < number_) return;
  number_ = number;
  from_ = from;
  tokens_ = std::move(tokens);
}

Draft OfferedDraft::After(std::span<const TokenId> answer, std::size_t most) const {
  const MutexLock lock(mu_);
  if (answer.size() < from_ || answer.size() - from_ >= tokens_.size()) return {};
  const std::span<const TokenId> came = answer.subspan(from_);
  const std::span<const TokenId> offered = tokens_;
  if (!std::ranges::equal(came, offered.first(came.size()))) return {};
  const std::span<const TokenId> rest = offered.subspan(came.size());
  const std::span<const TokenId> first = rest.first(std::min(most, rest.size()));
  return {.tokens = {first.begin(), first.end()}, .evidence = came.size() + 1};
}

void OfferedDraft::NoteCheck(std::uint32_t checked, std::uint32_t right) {
  const MutexLock lock(mu_);
  counts_.checked += checked;
  counts_.right += right;
}

OfferedDraft::Counts OfferedDraft::counts() const {
  const MutexLock lock(mu_);
  return counts_;
}

}  // namespace troupe
