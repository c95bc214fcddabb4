// One answer on one session: the loop that runs the passes a TextGeneration (generation.h) asks
// for, with drafts if there are any, and counts what they cost. Many answers at a time are
// batcher.h's.
#pragma once

#include <span>

#include "base/status.h"
#include "expert/flow/draft_governor.h"
#include "expert/flow/row_speed.h"
#include "runtime/generation.h"
#include "runtime/session.h"
#include "text/draft/drafters.h"

namespace troupe {

// Which drafters there are, and what is known of how well they do: of all answers of one engine.
struct Speculation {
  DraftChoice drafters;
  DraftGovernor governor;
  RowSpeedMeter meter;
};

struct GenerateHooks {
  TextSink on_text = {};
  LogitsSink on_logits = {};
  Session::StopAsked stop = {};        // asked before each chunk of the prompt and each pass
  Speculation* speculation = nullptr;  // null: no drafts
};

// Appends prompt and answer to the session, as far as they come. The prompt is not empty.
Result<Answer> Generate(Session& session, const Tokenizer& tokenizer,
                        std::span<const TokenId> prompt, const GenerateOptions& options,
                        const GenerateHooks& hooks = {});

}  // namespace troupe
