#include "server/openai_chat.h"

#include <set>
#include <utility>

#include "server/api_error.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "server/sse.h"

namespace troupe {
namespace {

constexpr std::size_t kMostMessages = 1 << 16;
constexpr std::size_t kMostTokensAsked = 1 << 24;

// A text, or parts that are texts.
std::string ContentIn(const JsonValue& message) {
  if (!Says(message, "content")) return {};
  const JsonValue content = message.At("content");
  if (content.IsString()) return content.String();
  if (!content.IsArray()) content.Fail("a text or an array of parts");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const JsonValue part = content.At(i);
    if (part.At("type").String() != "text")
      part.At("type").Fail("'text': this model reads no other");
    text += part.At("text").String();
  }
  return text;
}

std::vector<Message> MessagesIn(const JsonValue& list) {
  if (!list.IsArray() || list.size() == 0) list.Fail("an array of messages, at least one");
  if (list.size() > kMostMessages) list.Fail("fewer messages");
  std::vector<Message> messages;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue message = list.At(i);
    std::string role = message.At("role").String();
    if (role == "developer") role = "system";  // its newer name
    if (role != "system" && role != "user" && role != "assistant") {
      message.At("role").Fail("'system', 'user' or 'assistant'");
    }
    messages.push_back({.role = std::move(role), .content = ContentIn(message)});
  }
  return messages;
}

// What this server does not do must not be passed over: the answer would be another one.
void RefuseUnknown(const JsonValue& body) {
  if (Says(body, "tools") && body.At("tools").size() > 0) {
    body.At("tools").Fail("none: tools are not supported");
  }
  if (Says(body, "modalities")) {
    for (std::size_t i = 0; i < body.At("modalities").size(); ++i) {
      const JsonValue modality = body.At("modalities").At(i);
      if (modality.String() != "text") modality.Fail("'text'");
    }
  }
}

ChatCall CallOf(const JsonValue& body, const Request& defaults) {
  ChatCall call{.request = defaults, .call = {}};
  if (!body.IsObject()) body.Fail("an object");
  call.request.prompt = MessagesIn(body.At("messages"));
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    if (Says(body, key)) call.request.max_tokens = body.At(key).Count(0, kMostTokensAsked);
  }
  ReadGeneration(body, call.request);
  ReadShown(body, call.call);
  const bool tells = Says(body, "logprobs") && body.At("logprobs").Flag();
  if (tells) call.call.logprobs = 0;
  if (Says(body, "top_logprobs")) {
    const std::size_t top = body.At("top_logprobs").Count(0, kMostTopLogprobs);
    if (!tells && top > 0) body.At("top_logprobs").Fail("0 where logprobs is not true");
    if (tells) call.call.logprobs = top;
  }
  RefuseUnknown(body);
  return call;
}

Json BytesOf(std::string_view text) {
  Json bytes = Json::Array();
  for (const char c : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  return bytes;
}

Json LogprobsOf(std::span<const TokenLogprob> tokens) {
  Json content = Json::Array();
  for (const TokenLogprob& token : tokens) {
    Json tops = Json::Array();
    for (const TokenLogprob::Other& top : token.top) {
      tops.push_back({{"token", top.text}, {"logprob", top.logprob}, {"bytes", BytesOf(top.text)}});
    }
    content.push_back({{"token", token.text},
                       {"logprob", token.logprob},
                       {"bytes", BytesOf(token.text)},
                       {"top_logprobs", std::move(tops)}});
  }
  return {{"content", std::move(content)}};
}

class ChatFormatOfOpenAi final : public AnswerFormat {
 public:
  ChatFormatOfOpenAi(const ChatCall& call, OpenAiHead head)
      : call_(call.call), head_(std::move(head)) {}

  std::string Open() override {
    std::string events;
    for (std::size_t c = 0; c < call_.n; ++c) {
      events += Event(c, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr);
    }
    return events;
  }
  std::string Delta(std::size_t choice, const TextDelta& delta) override {
    return Event(choice, {{"content", delta.text}}, nullptr,
                 call_.logprobs ? LogprobsOf(delta.tokens) : Json());
  }
  std::string Close(std::size_t choice, const Answer& answer) override {
    return Event(choice, Json::Object(), OpenAiReason(answer.finish), nullptr);
  }
  std::string Last(std::span<const ChoiceAnswer> choices) override {
    std::string events;
    if (call_.include_usage) {
      Json chunk = HeadJson(head_, kChunk);
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
    Json chunk = HeadJson(head_, kChunk);
    chunk["choices"] = Json::Array();
    chunk["prompt_progress"] = {{"processed", read}, {"total", all}};
    return EventOf(chunk.Dump());
  }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    Json body = HeadJson(head_, "chat.completion");
    Json list = Json::Array();
    for (std::size_t c = 0; c < choices.size(); ++c) {
      const Answer& answer = choices[c].answer;
      list.push_back(
          {{"index", c},
           {"message", Json{{"role", "assistant"}, {"content", answer.text}, {"refusal", nullptr}}},
           {"logprobs", call_.logprobs ? LogprobsOf(choices[c].tokens) : Json()},
           {"finish_reason", OpenAiReason(answer.finish)}});
    }
    body["choices"] = std::move(list);
    body["usage"] = UsageJson(choices, call_.n);
    body["troupe"] = TroupeJson(choices, head_);
    return {.body = body.Dump()};
  }
  HttpResponse Refusal(const Status& status) override { return ErrorResponse(status); }

 private:
  static constexpr std::string_view kChunk = "chat.completion.chunk";

  std::string Event(std::size_t choice, Json delta, Json reason, Json logprobs) const {
    Json chunk = HeadJson(head_, kChunk);
    chunk["choices"] = Json::Array({Json{{"index", choice},
                                         {"delta", std::move(delta)},
                                         {"logprobs", std::move(logprobs)},
                                         {"finish_reason", std::move(reason)}}});
    return EventOf(chunk.Dump());
  }

  OpenAiCall call_;
  OpenAiHead head_;
};

}  // namespace

Result<ChatCall> ReadChatCall(std::string_view body, const Request& defaults) {
  return ReadBody<ChatCall>(body, [&](const JsonValue& json) { return CallOf(json, defaults); });
}

std::unique_ptr<AnswerFormat> MakeChatFormat(const ChatCall& call, OpenAiHead head) {
  return std::make_unique<ChatFormatOfOpenAi>(call, std::move(head));
}

}  // namespace troupe
