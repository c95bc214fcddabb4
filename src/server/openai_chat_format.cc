// How answers of /v1/chat/completions are shown: content, reasoning and calls in their fields.
#include <utility>

#include "server/answer_costs.h"
#include "server/api_error.h"
#include "server/json_splice.h"
#include "server/openai_chat.h"
#include "server/sse.h"
#include "server/token_logprobs.h"

namespace troupe {
namespace {

using PartKind = AnswerEvent::Kind;

Json BytesOf(std::string_view text) {
  Json bytes = Json::Array();
  for (const char c : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  return bytes;
}

Json TokenJson(const TokenLogprob& token) {
  Json tops = Json::Array();
  for (const TokenLogprob::Other& top : token.top) {
    tops.push_back({{"token", top.text}, {"logprob", top.logprob}, {"bytes", BytesOf(top.text)}});
  }
  return {{"token", token.text},
          {"logprob", token.logprob},
          {"bytes", BytesOf(token.text)},
          {"top_logprobs", std::move(tops)}};
}

Json LogprobsOf(std::span<const TokenLogprob> tokens) {
  Json content = Json::Array();
  for (const TokenLogprob& token : tokens) content.push_back(TokenJson(token));
  return {{"content", std::move(content)}};
}

// The same as text, with the values of one token at a time.
void AppendLogprobs(std::span<const TokenLogprob> tokens, std::string& to) {
  to += R"({"content":[)";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) to += ',';
    to += TokenJson(tokens[i]).Dump();
  }
  to += "]}";
}

// A stream's answer as far as it came.
struct ChatChoice {
  explicit ChatChoice(const AnswerReading& reading) : parser(reading.Parser()) {}

  AnswerParser parser;
  std::size_t calls = 0;
};

class ChatFormatOfOpenAi final : public AnswerFormat {
 public:
  ChatFormatOfOpenAi(const ChatCall& call, OpenAiHead head, AnswerReading reading)
      : call_(call.call), head_(std::move(head)), reading_(std::move(reading)) {
    for (std::size_t c = 0; c < call_.n; ++c) choices_.emplace_back(reading_);
  }

  std::string Open() override {
    std::string events;
    for (std::size_t c = 0; c < call_.n; ++c) {
      events += Event(c, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr);
    }
    return events;
  }
  std::string Delta(std::size_t choice, const TextDelta& delta) override {
    Json logprobs = call_.logprobs ? LogprobsOf(delta.tokens) : Json();
    const std::string events = Shown(choice, choices_[choice].parser.Push(delta.text), logprobs);
    if (!events.empty() || !call_.logprobs) return events;
    // The tokens of text that is held back, or of marks.
    return Event(choice, {{"content", ""}}, nullptr, std::move(logprobs));
  }
  std::string Close(std::size_t choice, const Answer& answer) override {
    const std::string rest = Shown(choice, choices_[choice].parser.Finish(), nullptr);
    Json chunk = Chunk(choice, Json::Object(),
                       OpenAiReason(answer.finish, choices_[choice].calls > 0), nullptr);
    TellCosts(answer.usage, head_.seed + choice, chunk);
    return rest + EventOf(chunk.Dump());
  }
  std::string Last(std::span<const ChoiceAnswer> choices) override {
    std::string events;
    if (call_.include_usage) {
      Json chunk = HeadJson(head_, kChunk);
      chunk["choices"] = Json::Array();
      chunk["usage"] = UsageJson(choices, call_.n);
      TellCosts(UsageOfAll(choices), head_.seed, chunk);
      events += EventOf(chunk.Dump());
    }
    return events + EventOf("[DONE]");
  }
  std::string Failure(const Status& status) override {
    return EventOf(ErrorBody(status)) + EventOf("[DONE]");
  }
  std::string Progress(std::size_t read, std::size_t all) override {
    Json chunk = HeadJson(head_, kChunk);
    chunk["choices"] = Json::Array();
    chunk["prompt_progress"] = ProgressJson(read, all);
    return EventOf(chunk.Dump());
  }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    std::string body = HeadJson(head_, "chat.completion").Dump();
    body.reserve(BytesOfAnswers(choices, kChatLogprobBytes));
    OpenMember(body, "choices");
    for (std::size_t c = 0; c < choices.size(); ++c) {
      body += c > 0 ? ',' : '[';
      AppendChoice(c, choices[c], body);
    }
    body += "]}";
    Json rest = {{"usage", UsageJson(choices, call_.n)}};
    TellCosts(UsageOfAll(choices), head_.seed, rest);
    AppendMembers(body, rest.Dump());
    return {.body = std::move(body)};
  }
  HttpResponse Refusal(const Status& status) override { return ErrorResponse(status); }

 private:
  static constexpr std::string_view kChunk = "chat.completion.chunk";

  void AppendChoice(std::size_t c, const ChoiceAnswer& choice, std::string& to) const {
    Json message = MessageOf(c, choice.answer.text);
    const bool calls = message.Find("tool_calls") != nullptr;
    to += Json{{"index", c}, {"message", std::move(message)}}.Dump();
    OpenMember(to, "logprobs");
    if (call_.logprobs) {
      AppendLogprobs(choice.tokens, to);
    } else {
      to += "null";
    }
    to += '}';
    AppendMember(to, "finish_reason", Json(OpenAiReason(choice.answer.finish, calls)).Dump());
  }

  Json MessageOf(std::size_t choice, std::string_view text) const {
    std::string content, reasoning;
    Json calls = Json::Array();
    for (const AnswerPart& part : PartsOf(reading_, text)) {
      if (part.kind == PartKind::kContent) content += part.text;
      if (part.kind == PartKind::kReasoning) reasoning += part.text;
      if (part.kind != PartKind::kCall) continue;
      calls.push_back({{"id", CallId(head_.id, choice, calls.size())},
                       {"type", "function"},
                       {"function", Json{{"name", part.name}, {"arguments", part.text}}}});
    }
    const bool is_null = content.empty() && calls.size() > 0;
    Json message = {
        {"role", "assistant"}, {"content", is_null ? Json() : Json(content)}, {"refusal", nullptr}};
    if (!reasoning.empty()) message["reasoning_content"] = reasoning;
    if (calls.size() > 0) message["tool_calls"] = std::move(calls);
    return message;
  }

  // Tokens are told with the first of the events.
  std::string Shown(std::size_t choice, const AnswerEvents& parts, Json logprobs) {
    std::string events;
    for (const AnswerEvent& part : parts) {
      events += Event(choice, DeltaOf(choice, part), nullptr, std::exchange(logprobs, Json()));
    }
    return events;
  }

  Json DeltaOf(std::size_t choice, const AnswerEvent& part) {
    std::size_t& calls = choices_[choice].calls;
    switch (part.kind) {
      case PartKind::kContent:
        return {{"content", part.text}};
      case PartKind::kReasoning:
        return {{"reasoning_content", part.text}};
      case PartKind::kCall: {
        const std::size_t index = calls++;
        return CallDelta({{"index", index},
                          {"id", CallId(head_.id, choice, index)},
                          {"type", "function"},
                          {"function", Json{{"name", part.text}, {"arguments", ""}}}});
      }
      case PartKind::kArguments:
        return CallDelta({{"index", calls - 1}, {"function", Json{{"arguments", part.text}}}});
    }
    TROUPE_CHECK(false);
  }
  static Json CallDelta(Json call) { return {{"tool_calls", Json::Array({std::move(call)})}}; }

  std::string Event(std::size_t choice, Json delta, Json reason, Json logprobs) const {
    return EventOf(Chunk(choice, std::move(delta), std::move(reason), std::move(logprobs)).Dump());
  }
  Json Chunk(std::size_t choice, Json delta, Json reason, Json logprobs) const {
    Json chunk = HeadJson(head_, kChunk);
    chunk["choices"] = Json::Array({Json{{"index", choice},
                                         {"delta", std::move(delta)},
                                         {"logprobs", std::move(logprobs)},
                                         {"finish_reason", std::move(reason)}}});
    return chunk;
  }

  OpenAiCall call_;
  OpenAiHead head_;
  AnswerReading reading_;
  std::vector<ChatChoice> choices_;
};

}  // namespace

std::unique_ptr<AnswerFormat> MakeChatFormat(const ChatCall& call, OpenAiHead head,
                                             AnswerReading reading) {
  return std::make_unique<ChatFormatOfOpenAi>(call, std::move(head), std::move(reading));
}

}  // namespace troupe
