// What others than its requests may do with an engine between two of its passes: when, and how
// much, so that answers under way do not wait for long.
#pragma once

#include <cstdint>
#include <functional>

#include "expert/flow/batch_policy.h"

namespace troupe {

struct PassGaps {
  // Has the engine's thread call something between two passes; without effect once it is closed.
  std::function<void(std::function<void()>)> between;
  // From such a call: how many rows, `most` at most, may go through layers in it. `seconds` says
  // how long n rows take. Null: as many as there are.
  std::function<std::uint32_t(const RowSeconds& seconds, std::uint32_t most)> rows = {};
};

}  // namespace troupe
