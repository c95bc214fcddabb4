#include "expert/optimum.h"

#include <algorithm>

namespace troupe {

Optimum::Optimum(ExpertGrid grid, std::span<const ExpertId> future)
    : grid_(grid),
      future_(future.begin(), future.end()),
      following_(future.size()),
      next_(grid.Count(), kNever) {
  for (std::size_t at = future_.size(); at > 0; --at) {
    std::uint64_t& next = next_[grid_.Index(future_[at - 1])];
    following_[at - 1] = next;
    next = at - 1;
  }
}

void Optimum::Asked(ExpertId id, std::uint32_t) {
  TROUPE_CHECK(position_ < future_.size() && future_[position_] == id);
  next_[grid_.Index(id)] = following_[position_];
  ++position_;
}

std::size_t Optimum::Choose(std::span<const ExpertId> candidates) {
  const auto farthest = std::ranges::max_element(
      candidates, {}, [&](ExpertId id) { return std::pair(next_[grid_.Index(id)], id); });
  return static_cast<std::size_t>(farthest - candidates.begin());
}

}  // namespace troupe
