// One of the experts that a row chose, and the weight of its answer in the row's sum. What routers
// write, policies change and the expert block computes.
#pragma once

#include <cstdint>
#include <limits>

namespace troupe {

// In place of an expert: no expert answers the slot.
inline constexpr std::uint32_t kNoExpert = std::numeric_limits<std::uint32_t>::max();

struct ExpertChoice {
  std::uint32_t expert = 0;
  float weight = 0;

  bool operator==(const ExpertChoice&) const = default;
};

}  // namespace troupe
