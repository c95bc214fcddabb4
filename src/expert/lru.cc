#include "expert/lru.h"

#include <algorithm>

namespace troupe {

std::size_t Lru::Choose(std::span<const ExpertId> candidates) {
  const auto oldest = std::ranges::min_element(
      candidates, {}, [&](ExpertId id) { return std::pair(last_asked_[grid_.Index(id)], id); });
  return static_cast<std::size_t>(oldest - candidates.begin());
}

}  // namespace troupe
