// How a model writes what is more than text: its reasoning and its calls of tools. Found by marks
// in the text of its chat template; answer_parser.h reads answers of a style, call_grammar.h
// forces them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class CallSyntax {
  kNone,
  kJson,     // open {"name": …, "arguments": {…}} close, or a list of them
  kNamed,    // open name name_end {…} close
  kTagged,   // open name name_end, then key_open key key_end value_open value value_end, close
  kBare,     // {"name": …, "parameters": {…}} as the whole answer, maybe after open
  kHarmony,  // messages with channels and recipients, as gpt-oss writes them
};

// Marks that a syntax does not have are empty.
struct CallMarks {
  CallSyntax syntax = CallSyntax::kNone;
  bool is_list = false;  // of kJson
  std::string section_open = {},
              section_close = {};  // around all calls of an answer, or around each
  bool one_in_section = false;
  std::string open = {}, name_end = {}, close = {};
  std::string key_open = {}, key_end = {}, value_open = {}, value_end = {};
  // Of kNamed: names are written as "functions.find:0", with the number of the call in the chat.
  std::string name_prefix = {};
  bool numbers_calls = false;
  bool exact_values = false;  // of kTagged: line ends around a value belong to it

  bool operator==(const CallMarks&) const = default;
  // What an answer contains where a call begins; not of kBare, which may begin without a mark.
  const std::string& first() const { return section_open.empty() ? open : section_open; }
};

struct AnswerStyle {
  std::string reasoning_open = {}, reasoning_close = {};  // empty: there is none between marks
  CallMarks calls;

  bool operator==(const AnswerStyle&) const = default;
  bool HasReasoning() const {
    return !reasoning_open.empty() || calls.syntax == CallSyntax::kHarmony;
  }
  // Texts that may be special tokens of a vocabulary. Those that are have to be shown to a parser.
  std::vector<std::string> Marks() const;
};

// Without calls if the template does not say how they look.
AnswerStyle RecogniseAnswerStyle(std::string_view chat_template);

// <tool_call>{"name": …}</tool_call>: what most models know, for those that were told of tools by
// us instead of by their template.
CallMarks GeneralCallMarks();

}  // namespace troupe
