// How an answer of /v1/messages is shown: blocks of text, thinking and calls, one after the other.
#include <algorithm>
#include <utility>

#include "base/json.h"
#include "server/answer_costs.h"
#include "server/anthropic_messages.h"
#include "server/api_error.h"
#include "server/sse.h"

namespace troupe {
namespace {

std::string_view StopReason(FinishReason reason, bool calls) {
  switch (reason) {
    case FinishReason::kLength:
      return "max_tokens";
    case FinishReason::kContextFull:
      return "model_context_window_exceeded";
    case FinishReason::kStopString:
      return "stop_sequence";
    case FinishReason::kEndToken:
      return calls ? "tool_use" : "end_turn";
    case FinishReason::kCancelled:
      return "end_turn";
  }
  return "end_turn";
}

Json InputOf(const std::string& arguments) {
  const auto json = Json::Parse(arguments);
  return json && json->IsObject() ? *json : Json::Object();
}

class MessagesFormat final : public AnswerFormat {
 public:
  MessagesFormat(const MessagesCall& call, MessagesHead head, AnswerReading reading)
      : stops_(call.stops),
        prompt_tokens_(call.prompt_tokens),
        head_(std::move(head)),
        reading_(std::move(reading)),
        parser_(reading_.Parser()) {}

  std::string Open() override {
    return Event("message_start", {{"message", MessageJson(Json::Array(), Json(), Json(), {})}});
  }
  std::string Delta(std::size_t, const TextDelta& delta) override {
    return Shown(parser_.Push(delta.text));
  }
  std::string Close(std::size_t, const Answer&) override {
    std::string events = Shown(parser_.Finish());
    if (!block_) events += Begin(AnswerEvent::Kind::kContent, "");
    return events + End();
  }
  std::string Last(std::span<const ChoiceAnswer> choices) override {
    const Answer& answer = choices.front().answer;
    return Event("message_delta", {{"delta", Json{{"stop_reason", ReasonOfEnd(answer, calls_ > 0)},
                                                  {"stop_sequence", StopOf(answer)}}},
                                   {"usage", UsageOf(answer.usage)},
                                   {"troupe", TroupeJson(answer.usage, head_.seed)}}) +
           Event("message_stop", Json::Object());
  }
  std::string Failure(const Status& status) override {
    return EventOf("error", ErrorBody(status, ErrorStyle::kAnthropic));
  }
  std::string Progress(std::size_t read, std::size_t all) override {
    return Event("ping", {{"prompt_progress", ProgressJson(read, all)}});
  }
  std::string Waiting() override { return Event("ping", Json::Object()); }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    const Answer& answer = choices.front().answer;
    Json content = Json::Array();
    std::size_t calls = 0;
    for (AnswerPart& part : PartsOf(reading_, answer.text)) {
      Json block = BlockOf(part.kind, part.name, calls);
      if (part.kind == AnswerEvent::Kind::kCall) {
        block["input"] = InputOf(part.text);
        ++calls;
      } else {
        block[part.kind == AnswerEvent::Kind::kContent ? "text" : "thinking"] = part.text;
      }
      content.push_back(std::move(block));
    }
    if (content.size() == 0) content.push_back(BlockOf(AnswerEvent::Kind::kContent, "", 0));
    Json message = MessageJson(std::move(content), ReasonOfEnd(answer, calls > 0), StopOf(answer),
                               answer.usage);
    message["troupe"] = TroupeJson(answer.usage, head_.seed);
    return {.body = message.Dump()};
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

  // As a block begins, before anything of it has come.
  Json BlockOf(AnswerEvent::Kind kind, std::string_view name, std::size_t call) const {
    switch (kind) {
      case AnswerEvent::Kind::kContent:
        return {{"type", "text"}, {"text", ""}};
      case AnswerEvent::Kind::kReasoning:
        return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
      case AnswerEvent::Kind::kCall:
      case AnswerEvent::Kind::kArguments:
        break;
    }
    return {{"type", "tool_use"},
            {"id", CallId(head_.id, 0, call)},
            {"name", name},
            {"input", Json::Object()}};
  }

  std::string Shown(const AnswerEvents& parts) {
    std::string events;
    for (const AnswerEvent& part : parts) {
      using Kind = AnswerEvent::Kind;
      const bool goes_on =
          part.kind == Kind::kArguments || (part.kind != Kind::kCall && block_ == part.kind);
      if (!goes_on) {
        events += End();
        events += Begin(part.kind, part.text);
      }
      if (part.kind != Kind::kCall) events += DeltaEvent(part);
    }
    return events;
  }
  std::string Begin(AnswerEvent::Kind kind, std::string_view name) {
    block_ = kind;
    Json block = BlockOf(kind, name, calls_);
    if (kind == AnswerEvent::Kind::kCall) ++calls_;
    return Event("content_block_start", {{"index", blocks_}, {"content_block", std::move(block)}});
  }
  std::string End() {
    if (!block_) return {};
    block_.reset();
    return Event("content_block_stop", {{"index", blocks_++}});
  }
  std::string DeltaEvent(const AnswerEvent& part) const {
    Json delta = {{"type", "text_delta"}, {"text", part.text}};
    if (part.kind == AnswerEvent::Kind::kReasoning) {
      delta = {{"type", "thinking_delta"}, {"thinking", part.text}};
    } else if (part.kind == AnswerEvent::Kind::kArguments) {
      delta = {{"type", "input_json_delta"}, {"partial_json", part.text}};
    }
    return Event("content_block_delta", {{"index", blocks_}, {"delta", std::move(delta)}});
  }

  // Tokens of the prompt are in one of three counts: computed, found, and kept for money, which
  // none is. At the beginning nobody knows yet what will be found.
  Json UsageOf(const Usage& usage) const {
    return {{"input_tokens", prompt_tokens_ - std::min(usage.cached_tokens, prompt_tokens_)},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", usage.cached_tokens},
            {"output_tokens", usage.generated_tokens}};
  }
  Json MessageJson(Json content, Json reason, Json stop, const Usage& usage) const {
    return {{"id", head_.id},
            {"type", "message"},
            {"role", "assistant"},
            {"model", head_.model},
            {"content", std::move(content)},
            {"stop_reason", std::move(reason)},
            {"stop_sequence", std::move(stop)},
            {"usage", UsageOf(usage)}};
  }
  // The chat's own marks of an end are no stop sequences of the client's.
  bool IsClients(const Answer& answer) const {
    return answer.finish == FinishReason::kStopString &&
           std::ranges::find(stops_, answer.stopped_by) != stops_.end();
  }
  std::string_view ReasonOfEnd(const Answer& answer, bool calls) const {
    const bool own = answer.finish == FinishReason::kStopString && !IsClients(answer);
    return StopReason(own ? FinishReason::kEndToken : answer.finish, calls);
  }
  Json StopOf(const Answer& answer) const {
    return IsClients(answer) ? Json(answer.stopped_by) : Json();
  }

  std::vector<std::string> stops_;
  std::size_t prompt_tokens_;
  MessagesHead head_;
  AnswerReading reading_;
  AnswerParser parser_;
  std::optional<AnswerEvent::Kind> block_;  // the one that is open
  std::size_t blocks_ = 0;                  // that have ended
  std::size_t calls_ = 0;
};

}  // namespace

std::unique_ptr<AnswerFormat> MakeMessagesFormat(const MessagesCall& call, MessagesHead head,
                                                 AnswerReading reading) {
  return std::make_unique<MessagesFormat>(call, std::move(head), std::move(reading));
}

}  // namespace troupe
