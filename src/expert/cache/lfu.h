// Gives up the expert that the fewest tokens have asked for; of several the one asked for longest
// ago. Remembers those outside the cache too: an expert that comes back has not lost its standing.
#pragma once

#include <vector>

#include "expert/cache/eviction_policy.h"

namespace troupe {

class Lfu final : public EvictionPolicy {
 public:
  explicit Lfu(ExpertGrid grid) : grid_(grid), uses_(grid.Count()) {}

  std::string_view name() const override { return "lfu"; }
  void OnAsked(ExpertId id, std::span<const Asker> askers) override;
  std::size_t Choose(std::span<const ExpertId> candidates) override;

 private:
  struct Use {
    std::uint64_t tokens = 0;
    std::uint64_t last_asked = 0;
    auto operator<=>(const Use&) const = default;
  };

  ExpertGrid grid_;
  std::uint64_t asks_ = 0;
  std::vector<Use> uses_;
};

}  // namespace troupe
