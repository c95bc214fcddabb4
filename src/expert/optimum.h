// The offline optimum (Belady): knows every expert that will be asked for and gives up the one
// whose next use lies farthest ahead. No policy without that knowledge hits more often, so it is
// what the others are measured against on a recorded run.
#pragma once

#include <cstdint>
#include <vector>

#include "expert/eviction_policy.h"

namespace troupe {

class Optimum final : public EvictionPolicy {
 public:
  // `future` is what Asked will be called with, in that order.
  Optimum(ExpertGrid grid, std::span<const ExpertId> future);

  std::string_view name() const override { return "optimum"; }
  // Stops the program if the run is not the recorded one: its answers would mean nothing.
  void Asked(ExpertId id, std::uint32_t tokens) override;
  std::size_t Choose(std::span<const ExpertId> candidates) override;

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  ExpertGrid grid_;
  std::vector<ExpertId> future_;
  std::vector<std::uint64_t> following_;  // for each ask the position of the same expert's next one
  std::vector<std::uint64_t> next_;       // of each expert, from the present position on
  std::size_t position_ = 0;
};

}  // namespace troupe
