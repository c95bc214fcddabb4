// A chat as any of the APIs asks for it, and what a model makes of it: the tokens of its prompt,
// the rule that its answer follows, and how that answer is read.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "runtime/chat_prompts.h"
#include "text/answer_parts/answer_parser.h"
#include "text/tokenizer.h"

namespace troupe {

enum class ToolChoice { kAuto, kNone, kRequired };

struct ChatAsk {
  Conversation chat = {};  // but its tools and options, which are here
  Json tools = {};         // as OpenAI's API lists them, or null
  Json options = {};       // of the model's template, or null
  ToolChoice choice = ToolChoice::kAuto;
  std::string only = {};        // the tool that must be called, of kRequired; empty: any
  bool parallel = true;         // more than one call in an answer
  bool parts_reasoning = true;  // from the content
  // Tokens of reasoning, of models that mark it; absent: any number.
  std::optional<std::size_t> most_reasoning = {};
  // What the request has that this server does not know: "a tool of type 'computer'".
  std::vector<std::string> passed_over = {};
};

// How the answers of a request are read.
struct AnswerReading {
  AnswerStyle style = {};
  PartOptions options = {.reads_reasoning = false};
  std::shared_ptr<const ToolSet> tools = std::make_shared<ToolSet>();

  AnswerParser Parser() const { return AnswerParser(style, options, tools); }
};

// Fills in the request's prompt, stop strings, rule and reasoning. `day`: for templates that write
// it. Errors name the field.
Result<AnswerReading> PrepareChat(const ChatAsk& ask, std::string day, const Tokenizer& tokenizer,
                                  const Result<ChatPrompts>& prompts, Request& request);

// The text that such a chat's prompt is, with its special tokens by their names.
Result<std::string> RenderPrompt(const ChatAsk& ask, std::string day,
                                 const Result<ChatPrompts>& prompts);

// One part of an answer: content, reasoning or a call.
struct AnswerPart {
  AnswerEvent::Kind kind = AnswerEvent::Kind::kContent;  // never kArguments
  std::string text;                                      // of a call its arguments
  std::string name;                                      // of a call

  bool operator==(const AnswerPart&) const = default;
};

// In the order in which they came.
std::vector<AnswerPart> PartsOf(const AnswerReading& reading, std::string_view text);

// The name of a call in later messages: `head` is the answer's own id.
std::string CallId(std::string_view head, std::size_t choice, std::size_t call);

}  // namespace troupe
