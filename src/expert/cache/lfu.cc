#include "expert/cache/lfu.h"

#include <algorithm>

namespace troupe {

void Lfu::OnAsked(ExpertId id, std::span<const Asker> askers) {
  Use& use = uses_[grid_.Index(id)];
  use.tokens += TokensOf(askers);
  use.last_asked = ++asks_;
}

std::size_t Lfu::Choose(std::span<const ExpertId> candidates) {
  const auto least = std::ranges::min_element(
      candidates, {}, [&](ExpertId id) { return std::pair(uses_[grid_.Index(id)], id); });
  return static_cast<std::size_t>(least - candidates.begin());
}

}  // namespace troupe
