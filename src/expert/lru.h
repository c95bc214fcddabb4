// Gives up the expert that was asked for longest ago.
#pragma once

#include <vector>

#include "expert/eviction_policy.h"

namespace troupe {

class Lru final : public EvictionPolicy {
 public:
  explicit Lru(ExpertGrid grid) : grid_(grid), last_asked_(grid.Count()) {}

  std::string_view name() const override { return "lru"; }
  void Asked(ExpertId id, std::uint32_t) override { last_asked_[grid_.Index(id)] = ++asks_; }
  std::size_t Choose(std::span<const ExpertId> candidates) override;

 private:
  ExpertGrid grid_;
  std::uint64_t asks_ = 0;
  std::vector<std::uint64_t> last_asked_;  // 0: never
};

}  // namespace troupe
