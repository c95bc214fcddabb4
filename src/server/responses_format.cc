// How an answer of /v1/responses is shown: items of output, each with its events in a stream.
#include <fmt/core.h>

#include <optional>
#include <utility>

#include "server/answer_costs.h"
#include "server/api_error.h"
#include "server/json_splice.h"
#include "server/openai_responses.h"
#include "server/responses_events.h"
#include "server/sse.h"

namespace troupe {
namespace {

using ItemKind = AnswerEvent::Kind;

// An item of the output as far as it came.
struct OutputItem {
  ItemKind kind = ItemKind::kContent;
  std::string id, name, call_id;
  std::string text;  // or arguments
};

bool WasCutOff(const Answer& answer) {
  return answer.finish == FinishReason::kLength || answer.finish == FinishReason::kContextFull;
}

Json TextPartOf(const OutputItem& item) {
  if (item.kind == ItemKind::kReasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
  return {{"type", "output_text"},
          {"text", item.text},
          {"annotations", Json::Array()},
          {"logprobs", Json::Array()}};
}

// `status`: "in_progress" before the end, with nothing of its text.
Json ItemJson(const OutputItem& item, std::string_view status) {
  const Json content = status == "in_progress" ? Json::Array() : Json::Array({TextPartOf(item)});
  switch (item.kind) {
    case ItemKind::kContent:
      return {{"id", item.id},
              {"type", "message"},
              {"status", status},
              {"role", "assistant"},
              {"content", content}};
    case ItemKind::kReasoning:
      return {{"id", item.id},
              {"type", "reasoning"},
              {"status", status},
              {"summary", Json::Array()},
              {"content", content}};
    case ItemKind::kCall:
    case ItemKind::kArguments:
      break;
  }
  return {{"id", item.id},           {"type", "function_call"}, {"status", status},
          {"call_id", item.call_id}, {"name", item.name},       {"arguments", item.text}};
}

class ResponsesFormat final : public AnswerFormat {
 public:
  ResponsesFormat(const ResponsesCall& call, OpenAiHead head, AnswerReading reading,
                  std::uint64_t told)
      : streams_(call.stream),
        echo_(call.echo),
        head_(std::move(head)),
        reading_(std::move(reading)),
        parser_(reading_.Parser()),
        sequence_(told) {}

  std::string Open() override {
    std::string events;
    if (sequence_ == 0) {
      events = StateEvent("response.created", Response("in_progress", nullptr));
    }
    return events += Waiting();
  }
  std::string Delta(std::size_t, const TextDelta& delta) override {
    return Shown(parser_.Push(delta.text));
  }
  std::string Close(std::size_t, const Answer& answer) override {
    std::string events = Shown(parser_.Finish());
    if (output_.empty() && !item_) events += Begin({.kind = ItemKind::kContent, .text = {}});
    return events + End(WasCutOff(answer) ? "incomplete" : "completed");
  }
  std::string Last(std::span<const ChoiceAnswer> choices) override {
    const Answer& answer = choices.front().answer;
    if (answer.finish == FinishReason::kContextFull) return Full(choices.front());
    const bool cut = WasCutOff(answer);
    return StateEvent(cut ? "response.incomplete" : "response.completed",
                      Response(cut ? "incomplete" : "completed", &choices.front()));
  }
  std::string Failure(const Status& status) override {
    return Failed(Response("failed", nullptr), status);
  }
  std::string Progress(std::size_t read, std::size_t all) override {
    return StateEvent("response.in_progress", Response("in_progress", nullptr),
                      {{"prompt_progress", ProgressJson(read, all)}});
  }
  // An event, as Codex hangs up after five minutes without any, whatever comments come.
  std::string Waiting() override {
    return StateEvent("response.in_progress", Response("in_progress", nullptr));
  }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    const Answer& answer = choices.front().answer;
    const std::string_view status = WasCutOff(answer) ? "incomplete" : "completed";
    const std::vector<AnswerPart> parts = PartsOf(reading_, answer.text);
    for (const AnswerPart& part : parts) {
      OutputItem item = Named({.kind = part.kind, .text = part.name});
      item.text = part.text;
      const bool is_last = &part == &parts.back();
      output_.push_back(ItemJson(item, is_last ? status : "completed"));
    }
    if (output_.empty()) {
      output_.push_back(ItemJson(Named({.kind = ItemKind::kContent, .text = {}}), status));
    }
    return {.body = Repeating(Response(status, &choices.front()))};
  }
  // A stream's client learns in the stream that the context is full, as from OpenAI's server: Codex
  // makes its talk shorter then, and gives up at a 400. In a stream that has begun it learns all.
  HttpResponse Refusal(const Status& status) override {
    const bool begun = sequence_ > 0;
    if (!begun && (!streams_ || !status.context_full())) return ErrorResponse(status);
    std::string events = begun ? "" : Open();
    return {.content_type = std::string(kEventStream), .body = events += Failure(status)};
  }

 private:
  std::string Failed(Json response, const Status& status) {
    response["error"] = ResponseFailure(status);
    return StateEvent("response.failed", response);
  }
  // Not as an answer that is cut off, which Codex would ask for again.
  std::string Full(const ChoiceAnswer& choice) {
    return Failed(
        Response("failed", &choice),
        ContextFull("the answer fills the context: {} tokens",
                    choice.answer.usage.prompt_tokens + choice.answer.usage.generated_tokens));
  }

  std::string Event(std::string_view type, const Json& fields) {
    return ResponsesEvent(type, sequence_++, fields);
  }
  // Of the whole response.
  std::string StateEvent(std::string_view type, const Json& response,
                         const Json& fields = Json::Object()) {
    Json json = {{"type", type}, {"sequence_number", sequence_++}};
    json.Update(fields);
    std::string text = json.Dump();
    AppendMember(text, "response", Repeating(response));
    return EventOf(type, text);
  }

  std::string IdOf(std::string_view kind) const {
    const std::size_t at = head_.id.find('_');
    return fmt::format("{}_{}_{}", kind, at == head_.id.npos ? head_.id : head_.id.substr(at + 1),
                       output_.size());
  }
  OutputItem Named(const AnswerEvent& first) {
    OutputItem item{.kind = first.kind, .id = IdOf("msg"), .name = {}, .call_id = {}, .text = {}};
    if (first.kind == ItemKind::kReasoning) item.id = IdOf("rs");
    if (first.kind == ItemKind::kCall) {
      item.id = IdOf("fc");
      item.name = first.text;
      item.call_id = CallId(head_.id, 0, output_.size());
    }
    return item;
  }

  std::string Shown(const AnswerEvents& parts) {
    std::string events;
    for (const AnswerEvent& part : parts) {
      const bool goes_on = part.kind == ItemKind::kArguments ||
                           (item_ && part.kind != ItemKind::kCall && part.kind == item_->kind);
      if (!goes_on) {
        events += End("completed");
        events += Begin(part);
      }
      if (part.kind == ItemKind::kCall) continue;
      item_->text += part.text;
      events += Event(std::string(EventName()) + ".delta", Placed({{"delta", part.text}}));
    }
    return events;
  }

  // What the events of the open item's text begin with.
  std::string_view EventName() const {
    if (item_->kind == ItemKind::kContent) return "response.output_text";
    if (item_->kind == ItemKind::kReasoning) return "response.reasoning_text";
    return "response.function_call_arguments";
  }
  Json Placed(const Json& fields) const {
    Json json = {{"item_id", item_->id}, {"output_index", output_.size()}};
    if (item_->kind != ItemKind::kCall) json["content_index"] = 0;
    if (item_->kind == ItemKind::kContent) json["logprobs"] = Json::Array();
    json.Update(fields);
    return json;
  }
  std::string PartEvent(std::string_view name) {
    return Event(name, {{"item_id", item_->id},
                        {"output_index", output_.size()},
                        {"content_index", 0},
                        {"part", TextPartOf(*item_)}});
  }
  std::string ItemEvent(std::string_view name, std::string_view status) {
    return Event(name, {{"output_index", output_.size()}, {"item", ItemJson(*item_, status)}});
  }

  std::string Begin(const AnswerEvent& first) {
    item_ = Named(first);
    std::string events = ItemEvent("response.output_item.added", "in_progress");
    if (item_->kind != ItemKind::kCall) events += PartEvent("response.content_part.added");
    return events;
  }
  std::string End(std::string_view status) {
    if (!item_) return {};
    const bool is_call = item_->kind == ItemKind::kCall;
    Json text = {{is_call ? "arguments" : "text", item_->text}};
    if (is_call) text["name"] = item_->name;
    std::string events = Event(std::string(EventName()) + ".done", Placed(text));
    if (!is_call) events += PartEvent("response.content_part.done");
    events += ItemEvent("response.output_item.done", status);
    output_.push_back(ItemJson(*item_, status));
    item_.reset();
    return events;
  }

  // With what it repeats of the request.
  std::string Repeating(const Json& response) const {
    std::string text = response.Dump();
    AppendMembers(text, echo_);
    return text;
  }

  // `answer`: of a response that has ended.
  Json Response(std::string_view status, const ChoiceAnswer* answer) const {
    Json json = ResponseJson(head_, status);
    json["output"] = output_;
    if (status == "incomplete") {
      json["incomplete_details"] = Json{{"reason", "max_output_tokens"}};
    }
    if (answer == nullptr) return json;
    const Usage& usage = answer->answer.usage;
    json["usage"] = {{"input_tokens", usage.prompt_tokens},
                     {"input_tokens_details", Json{{"cached_tokens", usage.cached_tokens}}},
                     {"output_tokens", usage.generated_tokens},
                     {"output_tokens_details", Json{{"reasoning_tokens", usage.reasoning_tokens}}},
                     {"total_tokens", usage.prompt_tokens + usage.generated_tokens}};
    TellCosts(usage, head_.seed, json);
    return json;
  }

  const bool streams_;
  const std::string echo_;
  const OpenAiHead head_;
  const AnswerReading reading_;
  AnswerParser parser_;
  std::vector<Json> output_;        // the items that have ended
  std::optional<OutputItem> item_;  // the one that has not
  std::uint64_t sequence_;          // events that were told
};

}  // namespace

std::unique_ptr<AnswerFormat> MakeResponsesFormat(const ResponsesCall& call, OpenAiHead head,
                                                  AnswerReading reading, std::uint64_t told) {
  return std::make_unique<ResponsesFormat>(call, std::move(head), std::move(reading), told);
}

}  // namespace troupe
