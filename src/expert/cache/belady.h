// Belady's rule as a policy: knows every expert that will be asked for and gives up the one whose
// next use lies farthest ahead. Of asks that come one at a time it is the offline optimum; what the
// optimum of passes is, which ask for many at once, is pass_optimum.h's part.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "expert/cache/eviction_policy.h"

namespace troupe {

class Optimum final : public EvictionPolicy {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // One ask of the future, and the position of the same expert's next one.
  struct Use {
    ExpertId id;
    std::uint64_t next = kNever;
  };
  struct Future {
    std::vector<std::uint64_t> first;  // by grid index: the position of each expert's first ask
    // The asks in their order, one a call: a future that is longer than memory comes from a file.
    std::function<Use()> next;
  };

  // `future` is what Asked will be called with, in that order.
  Optimum(ExpertGrid grid, std::span<const ExpertId> future);
  Optimum(ExpertGrid grid, Future future);

  std::string_view name() const override { return "optimum"; }
  // Stops the program if the run is not the recorded one: its answers would mean nothing.
  void OnAsked(ExpertId id, std::span<const Asker> askers) override;
  std::size_t Choose(std::span<const ExpertId> candidates) override;

 private:
  ExpertGrid grid_;
  std::function<Use()> future_;
  std::vector<std::uint64_t> next_;  // of each expert, from the present position on
};

}  // namespace troupe
