// Some consecutive layers of a model: what one part of it computes where it is cut in two or more.
#pragma once

#include <cstdint>

namespace troupe {

struct LayerRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;  // one past the last

  std::uint32_t size() const { return end - first; }
  bool Contains(std::uint32_t layer) const { return layer >= first && layer < end; }
  bool operator==(const LayerRange&) const = default;
};

}  // namespace troupe
