// The fields of a request that say how tokens are chosen and when an answer ends, which the APIs
// share under the same names. What is out of its range is refused by its place.
#pragma once

#include <troupe/request.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_value.h"
#include "runtime/engine_plan.h"
#include "text/tokenizer.h"

namespace troupe {

// temperature, top_p, top_k, min_p, seed, logit_bias, presence_penalty, frequency_penalty and
// repeat_penalty (also as repetition_penalty), repeat_last_n, samplers, and those of
// repetition_fields.h. A seed of -1 is drawn.
void ReadSampling(const JsonValue& body, Sampling& sampling);
// Those, and stop, ignore_eos, quality, cache_salt, timeout (seconds), and what the answer must
// be: grammar (GBNF), json_schema, or response_format as OpenAI has it.
void ReadGeneration(const JsonValue& body, Request& request);

// Whether the ids of tokens in these fields are the model's.
Status CheckTokenIds(const Request& request, const Tokenizer& tokenizer);

// Whether a server that may lose so much can be asked for this quality. Less than its own is
// answered exactly (Request::most_loss); more it cannot give, and says what it can.
Status CheckLoss(const Request& request, const OffloadOptions& own);

// What an answer must be, as an object {"type", "schema"} says it: text, json_object or
// json_schema.
std::optional<AnswerRule> RuleOfFormat(const JsonValue& format);

// After which the request fails; absent: it does not say.
std::optional<std::chrono::nanoseconds> TimeoutIn(const JsonValue& body);

// Small enough for what clients keep numbers in: sent back it gives the same answer again.
std::uint64_t DrawSeed();

// At most `most`, or -1 as other servers say that there is no limit.
std::uint64_t CountOrNoLimit(const JsonValue& number, std::uint64_t most, std::uint64_t no_limit);

// A field that is not there or null is as if it were not said.
bool Says(const JsonValue& body, const char* key);
// The texts that end an answer: one or several, as many and as long as a server looks for.
std::vector<std::string> StopsIn(const JsonValue& value);

}  // namespace troupe
