// A number that two engines share only if they give the same logits: of the same model, by the same
// arithmetic, with the same types in the KV cache. What ArithmeticDigest says of experts, this says
// of all that a token passes.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "runtime/engine.h"

namespace troupe {

// Between passes, while no sequence is open: the logits of a few fixed tokens, read at once and one
// by one. Reads the experts that these need. Of an encoder-decoder there is none.
Result<std::uint64_t> AnswerDigest(Engine& engine);

}  // namespace troupe
