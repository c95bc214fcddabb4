// How many slots the cache of experts uses, and what became of their memory.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace troupe {

struct SlotUse {
  std::uint32_t most = 0;         // as planned
  std::uint32_t slots = 0;        // that may be used now
  std::uint32_t with_memory = 0;  // the slots behind these have none
  Bytes slot;                     // memory of one
  // Sums: by how much the number fell and rose, the memory that went back to the system, and
  // experts that went to another slot for it.
  std::uint64_t given_back = 0, taken_again = 0;
  Bytes returned;
  std::uint64_t moved = 0;
  bool refused = false;  // the system takes no memory back

  bool operator==(const SlotUse&) const = default;
};

}  // namespace troupe
