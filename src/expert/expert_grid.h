// The size of a model's table of experts, and where an expert stands in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "expert/expert_id.h"

namespace troupe {

// Layers without any experts are counted.
struct ExpertGrid {
  std::uint32_t layers = 0;
  std::uint32_t experts = 0;  // a layer

  std::size_t Count() const { return std::size_t{layers} * experts; }
  bool Has(ExpertId id) const { return id.layer < layers && id.expert < experts; }
  std::size_t Index(ExpertId id) const {
    TROUPE_DCHECK(Has(id));
    return std::size_t{id.layer} * experts + id.expert;
  }

  bool operator==(const ExpertGrid&) const = default;
};

}  // namespace troupe
