// The token loop: prompt in, text out as it comes, and a record of what happened. Sampling, stop
// strings and decoding are text/'s; this is where they meet the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/session.h"
#include "text/sampler.h"

namespace troupe {

struct GenerateOptions {
  std::size_t max_tokens = 128;
  SamplerOptions sampler;
  std::vector<std::string> stop;
  bool ignore_end = false;  // goes on past the tokens that end an answer
};

enum class FinishReason {
  kLength,    // max_tokens were generated
  kEndToken,  // the model ended its answer
  kStopString,
  kContextFull,  // no room for another token
  kCancelled,    // the caller's on_text or stop said so
};

std::string_view Name(FinishReason reason);

struct GenerateResult {
  std::vector<TokenId> token_ids;  // generated ones, without the one that ended the answer
  std::string text;                // what was shown
  FinishReason finish = FinishReason::kLength;
  std::size_t prompt_tokens = 0;  // that were read: all, unless it was cancelled before
  std::size_t decode_steps = 0;   // passes of one token after the prompt
  std::uint64_t expert_uses = 0;  // (token, layer, expert) triples that the router chose
  ExpertUsage experts;            // where they came from, prompt and answer
  ExpertUsage decode_experts;     // the same for the passes after the first token
  double prefill_seconds = 0;
  double first_token_seconds = 0;  // from the start to the first token chosen
  double decode_seconds = 0;       // for the passes after the first token
  double decode_pass_seconds = 0;  // of these in the model, the rest was choosing and showing

  double PrefillTokensPerSecond() const;
  double DecodeTokensPerSecond() const;  // zero if nothing was decoded
};

// Called with each piece of text as soon as its characters are complete; false stops.
using TextSink = std::function<bool(std::string_view piece)>;
// Called with each generated token and the logits it was chosen from; an error ends the run.
using LogitsSink = std::function<Status(TokenId token, std::span<const float> logits)>;

struct GenerateHooks {
  TextSink on_text = {};
  LogitsSink on_logits = {};
  Session::StopAsked stop = {};  // asked before each chunk of the prompt and each token
};

// Appends prompt and answer to the session, as far as they come. The prompt is not empty.
Result<GenerateResult> Generate(Session& session, const Tokenizer& tokenizer,
                                std::span<const TokenId> prompt, const GenerateOptions& options,
                                const GenerateHooks& hooks = {});

}  // namespace troupe
