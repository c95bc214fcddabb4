// The check of a draft: whether what follows each of its tokens is the next one, for an answer that
// is being written. The tokens that an answer gets are those it would get one by one, as the logits
// after each are the same bytes and the next token is a function of them, the seed and the position
// (text/sampler.h). Who runs the passes lets the sequences forget the rest (batch_loop.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/generation.h"
#include "text/sampler.h"

namespace troupe {

// What follows the sure tokens (0) or that many of the guesses.
using LogitsAfter = std::function<std::span<const float>(std::size_t guesses)>;

// Lets the answer go on as long as its next token is the draft's: by one token more than are right,
// unless it ends. Gives how many of the guesses stay in its sequence. An answer that fails says so
// by its state. REQUIRES: it is decoding.
std::uint32_t AcceptGuesses(TextGeneration& generation, std::span<const TokenId> draft,
                            const LogitsAfter& logits, SamplerScratch& scratch);

}  // namespace troupe
