// The public values (include/troupe) to the engine's own, and back. No engine is needed for any of
// it but how the model's chats are written, and its tokenizer.
#pragma once

#include <troupe/model.h>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/batch_loop.h"
#include "runtime/batcher.h"
#include "runtime/chat_prompts.h"
#include "runtime/engine_plan.h"
#include "runtime/generation.h"
#include "text/tokenizer.h"

namespace troupe {

// kInvalidArgument if an option is out of its range.
Result<EngineOptions> ToEngineOptions(const ModelOptions& options);

// `pass_rows`: that go through the layers together, as planned.
BatcherOptions ToBatcherOptions(const ModelOptions& options, std::uint32_t pass_rows);

// The tokens of a prompt. Fails as its request would.
Result<std::vector<TokenId>> EncodePrompt(const Prompt& prompt, const Tokenizer& tokenizer,
                                          const Result<ChatPrompts>& chat);

// Whether a model that was opened so must answer it exactly.
bool AnswersExactly(const Request& request, const Lossiness& opened);

// Encodes the prompt, and adds the stop strings of a chat's format. Without its sinks.
Result<BatchRequest> ToBatchRequest(Request request, const Tokenizer& tokenizer,
                                    const Result<ChatPrompts>& chat, Nanos now);

// `lossiness`: the chain in force.
Plan ToPlan(const EnginePlan& plan, std::string lossiness);
Metrics ToMetrics(const BatchCounters& counters);

}  // namespace troupe
