// Names one expert of a model, and says what a layer wants of it.
#pragma once

#include <fmt/core.h>

#include <compare>
#include <cstdint>
#include <string>

namespace troupe {

struct ExpertId {
  std::uint32_t layer = 0;  // of the model, dense layers counted
  std::uint32_t expert = 0;

  auto operator<=>(const ExpertId&) const = default;
};

// An expert that a layer chose, and for how many of its tokens.
struct ExpertDemand {
  std::uint32_t expert = 0;
  std::uint32_t tokens = 0;
  float weight = 0;  // the largest that a row gives it, where that decides who is loaded first

  bool operator==(const ExpertDemand&) const = default;
};

inline std::string ToString(ExpertId id) {
  return fmt::format("layer {}, expert {}", id.layer, id.expert);
}

}  // namespace troupe
