#include "expert/cache/belady.h"

#include <algorithm>

namespace troupe {
namespace {

Optimum::Future InMemory(ExpertGrid grid, std::span<const ExpertId> asks) {
  std::vector<Optimum::Use> uses(asks.size());
  std::vector<std::uint64_t> next(grid.Count(), Optimum::kNever);
  for (std::size_t at = asks.size(); at > 0; --at) {
    std::uint64_t& following = next[grid.Index(asks[at - 1])];
    uses[at - 1] = {.id = asks[at - 1], .next = following};
    following = at - 1;
  }
  return {.first = std::move(next),
          .next = [future = std::move(uses), position = std::size_t{0}]() mutable {
            TROUPE_CHECK(position < future.size());
            return future[position++];
          }};
}

}  // namespace

Optimum::Optimum(ExpertGrid grid, std::span<const ExpertId> future)
    : Optimum(grid, InMemory(grid, future)) {}

Optimum::Optimum(ExpertGrid grid, Future future)
    : grid_(grid), future_(std::move(future.next)), next_(std::move(future.first)) {
  TROUPE_CHECK(next_.size() == grid.Count());
}

void Optimum::OnAsked(ExpertId id, std::span<const Asker>) {
  const Use use = future_();
  TROUPE_CHECK(use.id == id && "the run is the recorded one of future_");
  next_[grid_.Index(id)] = use.next;
}

std::size_t Optimum::Choose(std::span<const ExpertId> candidates) {
  const auto farthest = std::ranges::max_element(
      candidates, {}, [&](ExpertId id) { return std::pair(next_[grid_.Index(id)], id); });
  return static_cast<std::size_t>(farthest - candidates.begin());
}

}  // namespace troupe
