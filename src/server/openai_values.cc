#include "server/openai_values.h"

#include "server/sampling_fields.h"

namespace troupe {

void ReadShown(const JsonValue& body, OpenAiCall& call) {
  if (Says(body, "n")) call.n = body.At("n").Count(1, kMostChoices);
  if (Says(body, "stream")) call.stream = body.At("stream").Flag();
  if (Says(body, "return_progress")) call.progress = body.At("return_progress").Flag();
  if (!Says(body, "stream_options")) return;
  const JsonValue options = body.At("stream_options");
  if (!options.IsObject()) options.Fail("an object");
  if (Says(options, "include_usage")) call.include_usage = options.At("include_usage").Flag();
}

void ReadProbs(const JsonValue& body, OpenAiCall& call) {
  if (!Says(body, "n_probs")) return;
  const std::size_t most = body.At("n_probs").Count(0, kMostTopLogprobs);
  if (most > 0) call.logprobs = most;
}

std::string_view OpenAiReason(FinishReason reason, bool calls) {
  switch (reason) {
    case FinishReason::kLength:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kEndToken:
    case FinishReason::kStopString:
      return calls ? "tool_calls" : "stop";
    case FinishReason::kCancelled:
      return "stop";
  }
  return "stop";
}

Json UsageJson(std::span<const ChoiceAnswer> choices, std::size_t n) {
  std::size_t prompt = 0, cached = 0, completion = 0, reasoning = 0;
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const Usage& usage = choices[c].answer.usage;
    if (c % n == 0) {
      prompt += usage.prompt_tokens;
      cached += usage.cached_tokens;
    }
    completion += usage.generated_tokens;
    reasoning += usage.reasoning_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion},
          {"prompt_tokens_details", Json{{"cached_tokens", cached}}},
          {"completion_tokens_details", Json{{"reasoning_tokens", reasoning}}}};
}

Json HeadJson(const OpenAiHead& head, std::string_view object) {
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

}  // namespace troupe
