// What OpenAI's completions and chat completions have in common: ids, usage, reasons, and the
// fields that say how an answer is shown. Pure.
#pragma once

#include <troupe/request.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_value.h"
#include "server/answer_format.h"

namespace troupe {

inline constexpr std::size_t kMostChoices = 128;
inline constexpr std::size_t kMostTopLogprobs = 20;

// How an answer is asked to be shown.
struct OpenAiCall {
  std::size_t n = 1;
  bool stream = false;
  bool include_usage = false;           // of a stream
  bool progress = false;                // of a stream: tokens of the prompt read so far
  std::optional<std::size_t> logprobs;  // other likely tokens beside each; absent: none are told
};

// The same in every object of an answer.
struct OpenAiHead {
  std::string id;
  std::string model;
  std::uint64_t created = 0;  // seconds since 1970
  std::uint64_t seed = 0;     // of the first answer; those after it have the next ones
};

// n, stream, stream_options and return_progress.
void ReadShown(const JsonValue& body, OpenAiCall& call);

// n_probs, as llama-server calls the likely tokens beside each.
void ReadProbs(const JsonValue& body, OpenAiCall& call);

// `calls`: the answer ends with calls of tools.
std::string_view OpenAiReason(FinishReason reason, bool calls = false);
// Answers of one prompt, n each, follow one another; they count it once.
Json UsageJson(std::span<const ChoiceAnswer> choices, std::size_t n);
Json HeadJson(const OpenAiHead& head, std::string_view object);

}  // namespace troupe
