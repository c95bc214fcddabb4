// A number that two machines share only if they compute experts to the same bytes: a hash of what
// some of the model's experts, one for each combination of types, answer to fixed rows.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "runtime/engine.h"

namespace troupe {

// Between passes; reads those experts if they are not in memory.
Result<std::uint64_t> ArithmeticDigest(Engine& engine);

}  // namespace troupe
