// Names one expert of a model.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <string>

namespace troupe {

struct ExpertId {
  std::uint32_t layer = 0;  // of the model, dense layers counted
  std::uint32_t expert = 0;

  auto operator<=>(const ExpertId&) const = default;
};

inline std::string ToString(ExpertId id) {
  return fmt::format("layer {}, expert {}", id.layer, id.expert);
}

}  // namespace troupe
