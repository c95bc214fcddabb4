#include "server/anthropic_messages.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "server/api_error.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "server/sse.h"

namespace troupe {
namespace {

constexpr std::size_t kMostTurns = 1 << 16;
constexpr std::size_t kMostTokensOfAnswer = 1 << 24;
constexpr std::size_t kMostStopSequences = 64;

// A text, or blocks that are texts.
std::string TextOfBlocks(const JsonValue& content) {
  if (content.IsString()) return content.String();
  if (!content.IsArray()) content.Fail("a text or an array of blocks");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const JsonValue block = content.At(i);
    const JsonValue type = block.At("type");
    if (type.String() != "text") type.Fail("'text': this model reads no other");
    text += block.At("text").String();
  }
  return text;
}

// Claude Code begins its system message with a block that changes with each request and says who
// pays: no model is to read it, and with it no two requests would begin alike.
bool SaysWhoPays(const JsonValue& block) {
  return block.Has("text") && block.At("text").IsString() &&
         block.At("text").String().starts_with("x-anthropic-billing-header");
}

std::string SystemIn(const JsonValue& system) {
  if (!system.IsArray()) return TextOfBlocks(system);
  std::string text;
  for (std::size_t i = 0; i < system.size(); ++i) {
    const JsonValue block = system.At(i);
    if (SaysWhoPays(block)) continue;
    if (!text.empty()) text += '\n';
    const JsonValue type = block.At("type");
    if (type.String() != "text") type.Fail("'text'");
    text += block.At("text").String();
  }
  return text;
}

std::vector<Message> TurnsIn(const JsonValue& body) {
  std::vector<Message> turns;
  if (Says(body, "system")) {
    std::string system = SystemIn(body.At("system"));
    if (!system.empty()) turns.push_back({.role = "system", .content = std::move(system)});
  }
  const JsonValue list = body.At("messages");
  if (!list.IsArray() || list.size() == 0) list.Fail("an array of messages, at least one");
  if (list.size() > kMostTurns) list.Fail("fewer messages");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue role = list.At(i).At("role");
    if (role.String() != "user" && role.String() != "assistant") {
      role.Fail("'user' or 'assistant'");
    }
    turns.push_back({.role = role.String(), .content = TextOfBlocks(list.At(i).At("content"))});
  }
  return turns;
}

MessagesCall MessagesCallFrom(const JsonValue& body, MessagesKind kind, const Request& defaults) {
  MessagesCall call{.request = defaults};
  if (!body.IsObject()) body.Fail("an object");
  call.request.prompt = TurnsIn(body);
  if (Says(body, "tools") && body.At("tools").size() > 0) {
    body.At("tools").Fail("none: tools are not supported");
  }
  if (kind == MessagesKind::kCount) return call;
  call.request.max_tokens = body.At("max_tokens").Count(1, kMostTokensOfAnswer);
  ReadGeneration(body, call.request);
  if (Says(body, "stop_sequences")) {
    call.request.stop = TextsIn(body.At("stop_sequences"), kMostStopSequences);
    for (const std::string& stop : call.request.stop) {
      if (stop.empty()) body.At("stop_sequences").Fail("texts that are not empty");
    }
  }
  if (Says(body, "stream")) call.stream = body.At("stream").Flag();
  return call;
}

std::string_view StopReason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return "max_tokens";
    case FinishReason::kContextFull:
      return "model_context_window_exceeded";
    case FinishReason::kStopString:
      return "stop_sequence";
    case FinishReason::kEndToken:
    case FinishReason::kCancelled:
      return "end_turn";
  }
  return "end_turn";
}

class MessagesFormat final : public AnswerFormat {
 public:
  MessagesFormat(const MessagesCall& call, MessagesHead head)
      : stops_(call.request.stop), prompt_tokens_(call.prompt_tokens), head_(std::move(head)) {}

  std::string Open() override {
    return Event("message_start", {{"message", MessageJson(Json::Array(), Json(), Json(), 0)}}) +
           Event("content_block_start",
                 {{"index", 0}, {"content_block", Json{{"type", "text"}, {"text", ""}}}});
  }
  std::string Delta(std::size_t, const TextDelta& delta) override {
    if (delta.text.empty()) return {};
    return Event("content_block_delta",
                 {{"index", 0}, {"delta", Json{{"type", "text_delta"}, {"text", delta.text}}}});
  }
  std::string Close(std::size_t, const Answer&) override {
    return Event("content_block_stop", {{"index", 0}});
  }
  std::string Last(std::span<const ChoiceAnswer> choices) override {
    const Answer& answer = choices.front().answer;
    return Event("message_delta", {{"delta", Json{{"stop_reason", ReasonOfEnd(answer)},
                                                  {"stop_sequence", StopOf(answer)}}},
                                   {"usage", UsageOf(answer.usage.generated_tokens)}}) +
           Event("message_stop", Json::Object());
  }
  std::string Failure(const Status& status) override {
    return EventOf("error", ErrorBody(status, ErrorStyle::kAnthropic));
  }
  std::string Progress(std::size_t, std::size_t) override { return Event("ping", Json::Object()); }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    const Answer& answer = choices.front().answer;
    return {.body = MessageJson(Json::Array({Json{{"type", "text"}, {"text", answer.text}}}),
                                ReasonOfEnd(answer), StopOf(answer), answer.usage.generated_tokens)
                        .Dump()};
  }
  HttpResponse Refusal(const Status& status) override {
    return ErrorResponse(status, ErrorStyle::kAnthropic);
  }

 private:
  static std::string Event(std::string_view type, const Json& fields) {
    Json json = {{"type", type}};
    json.Update(fields);
    return EventOf(type, json.Dump());
  }
  Json UsageOf(std::size_t generated) const {
    return {{"input_tokens", prompt_tokens_}, {"output_tokens", generated}};
  }
  Json MessageJson(Json content, Json reason, Json stop, std::size_t generated) const {
    return {{"id", head_.id},
            {"type", "message"},
            {"role", "assistant"},
            {"model", head_.model},
            {"content", std::move(content)},
            {"stop_reason", std::move(reason)},
            {"stop_sequence", std::move(stop)},
            {"usage", UsageOf(generated)}};
  }
  // The chat's own marks of an end are no stop sequences of the client's.
  bool IsClients(const Answer& answer) const {
    return answer.finish == FinishReason::kStopString &&
           std::ranges::find(stops_, answer.stopped_by) != stops_.end();
  }
  std::string_view ReasonOfEnd(const Answer& answer) const {
    const bool own = answer.finish == FinishReason::kStopString && !IsClients(answer);
    return own ? "end_turn" : StopReason(answer.finish);
  }
  Json StopOf(const Answer& answer) const {
    return IsClients(answer) ? Json(answer.stopped_by) : Json();
  }

  std::vector<std::string> stops_;
  std::size_t prompt_tokens_;
  MessagesHead head_;
};

}  // namespace

Result<MessagesCall> ReadMessagesCall(std::string_view body, MessagesKind kind,
                                      const Request& defaults) {
  return ReadBody<MessagesCall>(
      body, [&](const JsonValue& json) { return MessagesCallFrom(json, kind, defaults); });
}

std::unique_ptr<AnswerFormat> MakeMessagesFormat(const MessagesCall& call, MessagesHead head) {
  return std::make_unique<MessagesFormat>(call, std::move(head));
}

}  // namespace troupe
