#include "server/llama_completion.h"

#include <fmt/core.h>

#include <utility>

#include "server/answer_costs.h"
#include "server/api_error.h"
#include "server/chat_fields.h"
#include "server/json_splice.h"
#include "server/prompt_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "server/sse.h"
#include "server/token_logprobs.h"

namespace troupe {
namespace {

constexpr std::size_t kMostLlamaPrompts = 128;
constexpr std::size_t kMostFiles = 1024;

// What an editor knows of other files comes first, each under its name.
std::string FilesIn(const JsonValue& list) {
  if (!list.IsArray() || list.size() > kMostFiles) list.Fail("an array of files");
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue file = list.At(i);
    const std::string name = Says(file, "filename") ? file.At("filename").String() : "snippet";
    text += fmt::format("--- {} ---\n{}\n", name, file.At("text").String());
  }
  return text;
}

// `prompt` is the beginning of what is missing: it stands before the gap.
Gap GapIn(const JsonValue& body) {
  Gap gap;
  if (Says(body, "input_extra")) gap.before = FilesIn(body.At("input_extra"));
  gap.before += body.At("input_prefix").String();
  gap.after = body.At("input_suffix").String();
  if (Says(body, "prompt")) gap.before += body.At("prompt").String();
  CheckPromptBytes(body, gap.before.size() + gap.after.size());
  return gap;
}

void RefuseOthers(const JsonValue& body) {
  if (Says(body, "post_sampling_probs") && body.At("post_sampling_probs").Flag()) {
    body.At("post_sampling_probs").Fail("false: n_probs are told as before sampling");
  }
  if (Says(body, "response_fields") && body.At("response_fields").size() > 0) {
    body.At("response_fields").Fail("none: answers have all their fields");
  }
}

LlamaCall LlamaCallFrom(const JsonValue& body, LlamaKind kind, const Request& defaults) {
  if (!body.IsObject()) body.Fail("an object");
  LlamaCall call{.prompts = {}, .request = defaults, .call = {}};
  if (kind == LlamaKind::kGap) {
    call.prompts.emplace_back(GapIn(body));
  } else {
    const JsonValue prompt = body.At("prompt");
    call.prompts = PromptsIn(prompt, kMostLlamaPrompts);
    call.is_list = prompt.IsArray() && !prompt.At(std::size_t{0}).raw().IsNumber();
  }
  for (const char* key : {"max_tokens", "n_predict"}) {
    if (!Says(body, key)) continue;
    call.request.max_tokens = CountOrNoLimit(body.At(key), kMostTokensAsked, defaults.max_tokens);
  }
  ReadGeneration(body, call.request);
  if (Says(body, "stream")) call.call.stream = body.At("stream").Flag();
  if (Says(body, "return_progress")) call.call.progress = body.At("return_progress").Flag();
  ReadProbs(body, call.call);
  RefuseOthers(body);
  if (Says(body, "return_tokens")) call.tells_tokens = body.At("return_tokens").Flag();
  return call;
}

std::string_view StopTypeOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndToken:
      return "eos";
    case FinishReason::kStopString:
      return "word";
    case FinishReason::kLength:
    case FinishReason::kContextFull:
      return "limit";
    case FinishReason::kCancelled:
      return "none";
  }
  return "none";
}

// A list with the values of one token at a time.
void AppendProbs(std::span<const TokenLogprob> tokens, std::string& to) {
  to += '[';
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Json top = Json::Array();
    for (const TokenLogprob::Other& other : tokens[i].top) {
      top.push_back({{"token", other.text}, {"logprob", other.logprob}});
    }
    if (i > 0) to += ',';
    to += Json{{"token", tokens[i].text},
               {"logprob", tokens[i].logprob},
               {"top_logprobs", std::move(top)}}
              .Dump();
  }
  to += ']';
}

class LlamaFormat final : public AnswerFormat {
 public:
  LlamaFormat(const LlamaCall& call, LlamaHead head)
      : is_list_(call.is_list),
        tells_probs_(call.call.logprobs.has_value()),
        tells_tokens_(call.tells_tokens),
        head_(std::move(head)) {}

  std::string Open() override { return {}; }
  std::string Delta(std::size_t choice, const TextDelta& delta) override {
    return EventOf(WithProbs(
        {{"index", choice}, {"content", delta.text}, {"tokens", Json::Array()}, {"stop", false}},
        delta.tokens));
  }
  std::string Close(std::size_t choice, const Answer& answer) override {
    Json event = EndOf(choice, answer);
    event["content"] = "";
    return EventOf(event.Dump());
  }
  std::string Last(std::span<const ChoiceAnswer>) override { return {}; }
  std::string Failure(const Status& status) override { return EventOf(ErrorBody(status)); }
  std::string Progress(std::size_t read, std::size_t all) override {
    return EventOf(Json{{"index", 0},
                        {"content", ""},
                        {"stop", false},
                        {"prompt_progress", ProgressJson(read, all)}}
                       .Dump());
  }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    std::string body = is_list_ ? "[" : "";
    body.reserve(BytesOfAnswers(choices, kLlamaLogprobBytes));
    for (std::size_t c = 0; c < choices.size(); ++c) {
      Json one = EndOf(c, choices[c].answer);
      one["content"] = choices[c].answer.text;
      if (tells_tokens_) one["tokens"] = choices[c].answer.tokens;
      if (c > 0) body += ',';
      body += WithProbs(one, choices[c].tokens);
    }
    if (is_list_) body += ']';
    return {.body = std::move(body)};
  }
  HttpResponse Refusal(const Status& status) override { return ErrorResponse(status); }

 private:
  std::string WithProbs(const Json& object, std::span<const TokenLogprob> tokens) const {
    std::string text = object.Dump();
    if (!tells_probs_) return text;
    OpenMember(text, "completion_probabilities");
    AppendProbs(tokens, text);
    text += '}';
    return text;
  }

  // What is told at the end, whole or in a stream.
  Json EndOf(std::size_t choice, const Answer& answer) const {
    Json json = {{"index", choice},
                 {"content", nullptr},
                 {"tokens", Json::Array()},
                 {"stop", true},
                 {"model", head_.model},
                 {"tokens_predicted", answer.usage.generated_tokens},
                 {"tokens_evaluated", answer.usage.prompt_tokens},
                 {"tokens_cached", answer.usage.prompt_tokens + answer.usage.generated_tokens},
                 {"truncated", answer.finish == FinishReason::kContextFull},
                 {"has_new_line", answer.text.find('\n') != answer.text.npos},
                 {"stop_type", StopTypeOf(answer.finish)},
                 {"stopping_word", answer.stopped_by}};
    TellCosts(answer.usage, head_.seed, json);
    return json;
  }

  const bool is_list_, tells_probs_, tells_tokens_;
  const LlamaHead head_;
};

}  // namespace

Result<LlamaCall> ReadLlamaCall(std::string_view body, LlamaKind kind, const Request& defaults) {
  return ReadBody<LlamaCall>(
      body, [&](const JsonValue& json) { return LlamaCallFrom(json, kind, defaults); });
}

std::unique_ptr<AnswerFormat> MakeLlamaFormat(const LlamaCall& call, LlamaHead head) {
  return std::make_unique<LlamaFormat>(call, std::move(head));
}

}  // namespace troupe
