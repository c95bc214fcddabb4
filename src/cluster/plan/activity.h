// How often a node's own users activate each expert (the paper's f). Counted on the thread that
// runs passes, taken by another one.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "expert/expert_grid.h"

namespace troupe {

class ActivityCounter {
 public:
  explicit ActivityCounter(ExpertGrid grid) : grid_(grid), counts_(grid.Count()) {}

  void Add(ExpertId id, std::uint32_t tokens) {
    counts_[grid_.Index(id)].fetch_add(tokens, std::memory_order_relaxed);
  }

  // Since it was taken last, by the grid's index.
  std::vector<std::uint32_t> Take() {
    std::vector<std::uint32_t> taken;
    taken.reserve(counts_.size());
    for (std::atomic<std::uint32_t>& count : counts_) {
      taken.push_back(count.exchange(0, std::memory_order_relaxed));
    }
    return taken;
  }

 private:
  ExpertGrid grid_;
  std::vector<std::atomic<std::uint32_t>> counts_;
};

}  // namespace troupe
