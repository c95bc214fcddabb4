// One answer on one session: the loop that runs the passes a TextGeneration (generation.h) asks
// for, and counts what they cost. Many answers at a time are batcher.h's.
#pragma once

#include <span>

#include "base/status.h"
#include "runtime/generation.h"
#include "runtime/session.h"

namespace troupe {

struct GenerateHooks {
  TextSink on_text = {};
  LogitsSink on_logits = {};
  Session::StopAsked stop = {};  // asked before each chunk of the prompt and each token
};

// Appends prompt and answer to the session, as far as they come. The prompt is not empty.
Result<Answer> Generate(Session& session, const Tokenizer& tokenizer,
                        std::span<const TokenId> prompt, const GenerateOptions& options,
                        const GenerateHooks& hooks = {});

}  // namespace troupe
