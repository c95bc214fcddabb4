#include "server/chat_ask.h"

#include <fmt/core.h>

#include <utility>

#include "api/answer_rules.h"
#include "server/prompt_fields.h"
#include "text/answer_parts/call_grammar.h"
#include "text/answer_parts/reasoning_meter.h"

namespace troupe {
namespace {

// Errors of fields begin so, as those of ReadBody.
constexpr const char* kPlace = "request";

Result<ToolSet> ToolsOf(const ChatAsk& ask) {
  Result<ToolSet> tools = ToolSet::Of(ask.choice == ToolChoice::kNone ? Json() : ask.tools);
  if (!tools.ok()) return Status(tools.status()).WithContext(kPlace);
  if (ask.choice != ToolChoice::kRequired) return tools;
  if (tools->empty()) {
    return InvalidArgument("{}: tool_choice: a call is asked for and there are no tools", kPlace);
  }
  if (!ask.only.empty() && tools->Find(ask.only) == nullptr) {
    return InvalidArgument("{}: tool_choice: there is no tool '{}'", kPlace, ask.only);
  }
  return tools;
}

// A rule for all of the text leaves no room for reasoning.
bool MayReason(const ChatAsk& ask, const AnswerReading& reading, const Request& request) {
  const bool rules_all = request.rule && !ask.parts_reasoning && !reading.options.reads_calls;
  return reading.style.HasReasoning() && !rules_all;
}

Status SetRule(const ChatAsk& ask, const AnswerReading& reading, Request& request) {
  const bool has_tools = !reading.tools->empty();
  // Reasoning may come before what a rule is about.
  const bool wraps_rule =
      request.rule && reading.options.reads_reasoning && reading.style.HasReasoning();
  if (!has_tools && !wraps_rule) return OkStatus();
  CallRules rules = {.must_call = ask.choice == ToolChoice::kRequired,
                     .only = ask.only,
                     .parallel = ask.parallel,
                     .starts_in_reasoning = reading.options.starts_in_reasoning};
  if (request.rule) {
    TROUPE_ASSIGN_OR_RETURN(rules.otherwise, GrammarOf(*request.rule));
  }
  TROUPE_ASSIGN_OR_RETURN(const Grammar grammar, CallGrammar(reading.style, *reading.tools, rules));
  std::string place = has_tools ? "request: tools" : request.rule->place;
  request.rule = AnswerRule{
      .kind = AnswerRule::Kind::kGrammar, .text = ToString(grammar), .place = std::move(place)};
  return OkStatus();
}

Result<RenderedChat> Rendered(const ChatAsk& ask, const ToolSet& tools, std::string day,
                              const Result<ChatPrompts>& prompts) {
  TROUPE_RETURN_IF_ERROR(prompts.status());
  Conversation chat = ask.chat;
  chat.day = std::move(day);
  if (!tools.empty()) chat.tools = ask.tools.Dump();
  if (ask.options.size() > 0) chat.options = ask.options.Dump();
  Result<RenderedChat> rendered = prompts->Render(chat);
  if (!rendered.ok()) return Status(rendered.status()).WithContext("request: messages");
  return rendered;
}

}  // namespace

Result<std::string> RenderPrompt(const ChatAsk& ask, std::string day,
                                 const Result<ChatPrompts>& prompts) {
  TROUPE_ASSIGN_OR_RETURN(const ToolSet tools, ToolsOf(ask));
  TROUPE_ASSIGN_OR_RETURN(const RenderedChat rendered,
                          Rendered(ask, tools, std::move(day), prompts));
  std::string text;
  for (const TextSegment& segment : rendered.segments) text += segment.text;
  return text;
}

Result<AnswerReading> PrepareChat(const ChatAsk& ask, std::string day, const Tokenizer& tokenizer,
                                  const Result<ChatPrompts>& prompts, Request& request) {
  TROUPE_RETURN_IF_ERROR(prompts.status());
  TROUPE_ASSIGN_OR_RETURN(ToolSet tools, ToolsOf(ask));
  const Result<RenderedChat> rendered = Rendered(ask, tools, std::move(day), prompts);
  TROUPE_RETURN_IF_ERROR(rendered.status());
  std::size_t bytes = 0;
  for (const TextSegment& segment : rendered->segments) bytes += segment.text.size();
  if (bytes > kMostPromptBytes) {
    return InvalidArgument("request: messages: {} bytes of text, expected at most {}", bytes,
                           kMostPromptBytes);
  }
  TROUPE_ASSIGN_OR_RETURN(request.prompt, tokenizer.EncodeSegments(rendered->segments));
  for (std::string& stop : prompts->StopStrings()) request.stop.push_back(std::move(stop));
  AnswerReading reading{.style = prompts->style(),
                        .options = {.reads_reasoning = ask.parts_reasoning,
                                    .reads_calls = !tools.empty(),
                                    .starts_in_reasoning = rendered->opens_reasoning},
                        .tools = std::make_shared<ToolSet>(std::move(tools))};
  request.show_marks = reading.options.reads_calls || reading.style.HasReasoning();
  if (MayReason(ask, reading, request)) {
    request.reasoning = ReasoningOf(reading.style, reading.options);
    request.reasoning->most_tokens = ask.most_reasoning;
  }
  if (Status status = SetRule(ask, reading, request); !status.ok()) {
    return std::move(status).WithContext(kPlace);
  }
  reading.tools = std::make_shared<ToolSet>(reading.tools->ForReading());
  return reading;
}

std::vector<AnswerPart> PartsOf(const AnswerReading& reading, std::string_view text) {
  using Kind = AnswerEvent::Kind;
  AnswerParser parser = reading.Parser();
  AnswerEvents events = parser.Push(text);
  for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
  std::vector<AnswerPart> parts;
  for (AnswerEvent& event : events) {
    if (event.kind == Kind::kCall) {
      parts.push_back({.kind = Kind::kCall, .text = {}, .name = std::move(event.text)});
    } else if (event.kind == Kind::kArguments ||
               (!parts.empty() && parts.back().kind == event.kind)) {
      parts.back().text += event.text;
    } else {
      parts.push_back({.kind = event.kind, .text = std::move(event.text), .name = {}});
    }
  }
  return parts;
}

std::string CallId(std::string_view head, std::size_t choice, std::size_t call) {
  const std::size_t dash = head.find_first_of("-_");
  return fmt::format("call_{}_{}_{}", dash == head.npos ? head : head.substr(dash + 1), choice,
                     call);
}

}  // namespace troupe
