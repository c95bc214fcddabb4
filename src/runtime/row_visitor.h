// Who is shown the logits of rows of a pass.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace troupe {

// Called for each row in order; the logits are valid during the call.
using RowVisitor = std::function<void(std::size_t row, std::span<const float> logits)>;

}  // namespace troupe
