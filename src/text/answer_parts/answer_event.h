// What an answer is made of, as it comes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct AnswerEvent {
  enum class Kind {
    kContent,
    kReasoning,
    kCall,       // a call of a tool begins, `text` is its name
    kArguments,  // of the last call: a part of a JSON text
  };
  Kind kind = Kind::kContent;
  std::string text;

  bool operator==(const AnswerEvent&) const = default;
};

using AnswerEvents = std::vector<AnswerEvent>;

// Joins texts of a kind, so that an answer's events do not tell how it was cut.
inline void AddEvent(AnswerEvent::Kind kind, std::string_view text, AnswerEvents& events) {
  const bool is_call = kind == AnswerEvent::Kind::kCall;
  if (text.empty() && !is_call) return;
  if (!is_call && !events.empty() && events.back().kind == kind) {
    events.back().text += text;
  } else {
    events.push_back({kind, std::string(text)});
  }
}

}  // namespace troupe
