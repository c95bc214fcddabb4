#include "server/openai_completions.h"

#include <utility>

#include "server/api_error.h"
#include "server/chat_fields.h"
#include "server/prompt_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "server/sse.h"

namespace troupe {
namespace {

constexpr std::size_t kMostPrompts = 128;

// The prompts are then what stands before the gap. Clients send an empty suffix where they mean
// none.
void MakeGaps(const JsonValue& suffix, std::vector<Prompt>& prompts) {
  const std::string after = suffix.String();
  if (after.empty()) return;
  for (Prompt& prompt : prompts) {
    auto* const before = std::get_if<std::string>(&prompt);
    if (before == nullptr)
      suffix.Fail("nothing beside a prompt of tokens: the text before the gap");
    prompt = Gap{.before = std::move(*before), .after = after};
  }
}

CompletionCall CallFrom(const JsonValue& body, const Request& defaults) {
  CompletionCall call{.prompts = {}, .request = defaults, .call = {}, .echo = {}};
  if (!body.IsObject()) body.Fail("an object");
  call.prompts = PromptsIn(body.At("prompt"), kMostPrompts);
  call.request.max_tokens = 16;  // as OpenAI has it
  if (Says(body, "max_tokens")) {
    call.request.max_tokens = body.At("max_tokens").Count(0, kMostTokensAsked);
  }
  ReadGeneration(body, call.request);
  ReadShown(body, call.call);
  if (Says(body, "logprobs")) {
    call.call.logprobs = body.At("logprobs").Count(0, kMostTopLogprobs);
  }
  if (Says(body, "best_of") && body.At("best_of").Count(1, kMostChoices) != call.call.n) {
    body.At("best_of").Fail("n: answers are not ranked");
  }
  if (Says(body, "echo") && body.At("echo").Flag()) {
    if (call.prompts.size() != 1 || !std::holds_alternative<std::string>(call.prompts[0])) {
      body.At("echo").Fail("false, unless there is one prompt, a text");
    }
    call.echo = std::get<std::string>(call.prompts[0]);
  }
  if (Says(body, "suffix")) MakeGaps(body.At("suffix"), call.prompts);
  return call;
}

Json LogprobsJson(std::span<const TokenLogprob> tokens, std::size_t offset) {
  Json texts = Json::Array(), logprobs = Json::Array(), tops = Json::Array(),
       offsets = Json::Array();
  for (const TokenLogprob& token : tokens) {
    texts.push_back(token.text);
    logprobs.push_back(token.logprob);
    Json top = Json::Object();
    for (const TokenLogprob::Other& other : token.top) top[other.text] = other.logprob;
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += token.text.size();
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

class CompletionFormat final : public AnswerFormat {
 public:
  CompletionFormat(const CompletionCall& call, OpenAiHead head)
      : call_(call.call),
        echo_(call.echo),
        head_(std::move(head)),
        offsets_(call.prompts.size() * call.call.n, call.echo.size()) {}

  std::string Open() override {
    std::string events;
    if (echo_.empty()) return events;
    for (std::size_t c = 0; c < call_.n; ++c) events += Event(Choice(c, echo_, nullptr));
    return events;
  }

  std::string Delta(std::size_t choice, const TextDelta& delta) override {
    Json json = Choice(choice, delta.text, nullptr);
    if (call_.logprobs) json["logprobs"] = LogprobsJson(delta.tokens, offsets_[choice]);
    offsets_[choice] += delta.text.size();
    return Event(std::move(json));
  }

  std::string Close(std::size_t choice, const Answer& answer) override {
    return Event(Choice(choice, "", OpenAiReason(answer.finish)));
  }

  std::string Last(std::span<const ChoiceAnswer> choices) override {
    std::string events;
    if (call_.include_usage) {
      Json chunk = HeadJson(head_, "text_completion");
      chunk["choices"] = Json::Array();
      chunk["usage"] = UsageJson(choices, call_.n);
      chunk["troupe"] = TroupeJson(choices, head_);
      events += EventOf(chunk.Dump());
    }
    return events + EventOf("[DONE]");
  }

  std::string Failure(const Status& status) override {
    return EventOf(ErrorBody(status)) + EventOf("[DONE]");
  }

  std::string Progress(std::size_t read, std::size_t all) override {
    if (!call_.progress) return CommentEvent("reading the prompt");
    Json chunk = HeadJson(head_, "text_completion");
    chunk["choices"] = Json::Array();
    chunk["prompt_progress"] = {{"processed", read}, {"total", all}};
    return EventOf(chunk.Dump());
  }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    Json body = HeadJson(head_, "text_completion");
    Json list = Json::Array();
    for (std::size_t c = 0; c < choices.size(); ++c) {
      Json choice =
          Choice(c, echo_ + choices[c].answer.text, OpenAiReason(choices[c].answer.finish));
      if (call_.logprobs) choice["logprobs"] = LogprobsJson(choices[c].tokens, echo_.size());
      list.push_back(std::move(choice));
    }
    body["choices"] = std::move(list);
    body["usage"] = UsageJson(choices, call_.n);
    body["troupe"] = TroupeJson(choices, head_);
    return {.body = body.Dump()};
  }

  HttpResponse Refusal(const Status& status) override { return ErrorResponse(status); }

 private:
  static Json Choice(std::size_t index, std::string_view text, Json reason) {
    return {{"index", index},
            {"text", text},
            {"logprobs", nullptr},
            {"finish_reason", std::move(reason)}};
  }
  std::string Event(Json choice) const {
    Json chunk = HeadJson(head_, "text_completion");
    chunk["choices"] = Json::Array({std::move(choice)});
    return EventOf(chunk.Dump());
  }

  OpenAiCall call_;
  std::string echo_;
  OpenAiHead head_;
  std::vector<std::size_t> offsets_;  // by choice: bytes shown
};

}  // namespace

Result<CompletionCall> ReadCompletionCall(std::string_view body, const Request& defaults) {
  return ReadBody<CompletionCall>(body,
                                  [&](const JsonValue& json) { return CallFrom(json, defaults); });
}

std::unique_ptr<AnswerFormat> MakeCompletionFormat(const CompletionCall& call, OpenAiHead head) {
  return std::make_unique<CompletionFormat>(call, std::move(head));
}

}  // namespace troupe
