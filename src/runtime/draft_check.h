// The check of a draft: whether what follows each of its tokens is the next one, for an answer that
// is being written. The tokens that an answer gets are those it would get one by one, as the logits
// after each are the same bytes and the next token is a function of them, the seed and the position
// (text/sampler.h). CheckDraft does all of it on a session; who runs the passes of many answers
// uses AcceptGuesses (batch_loop.h). Threads: as of the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "runtime/generation.h"
#include "runtime/session.h"

namespace troupe {

// What follows the sure tokens (0) or that many of the guesses.
using LogitsAfter = std::function<std::span<const float>(std::size_t guesses)>;

// Lets the answer go on as long as its next token is the draft's: by one token more than are right,
// unless it ends. Gives how many of the guesses stay in its sequence. An answer that fails says so
// by its state. REQUIRES: it is decoding.
std::uint32_t AcceptGuesses(TextGeneration& generation, std::span<const TokenId> draft,
                            const LogitsAfter& logits, SamplerScratch& scratch);

struct CheckedDraft {
  std::uint32_t drafted = 0;
  std::uint32_t right = 0;  // and taken over, of the first on
};

// Feeds what the answer asks for and the draft behind it, in one pass, and lets the answer go on by
// what is right. The session then holds what it would hold without the draft: its other tokens are
// forgotten, and no cache or predictor has learned from them. Fails as Session::Feed does, with
// nothing changed. REQUIRES: the answer is decoding and has a token; the draft has tokens, and no
// more than MostGuesses() of both.
Result<CheckedDraft> CheckDraft(Session& session, TextGeneration& generation,
                                std::span<const TokenId> draft);

}  // namespace troupe
