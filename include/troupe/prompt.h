// What a model is to go on from: a text, tokens or a chat. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

using TokenId = std::int32_t;

struct Message {
  std::string role;  // "system", "user", "assistant", or "tool" for what a tool has answered
  std::string content;
  // What else belongs to it, as a JSON object with the names of OpenAI's API: tool_calls,
  // tool_call_id, name, reasoning_content. Empty: nothing.
  std::string more = {};

  bool operator==(const Message&) const = default;
};

// A chat with what a model's own chat template may ask for beside the messages.
struct Conversation {
  std::vector<Message> messages;
  std::string tools = {};    // that may be called: a JSON array as in OpenAI's API; empty: none
  std::string options = {};  // a JSON object of names and values: {"enable_thinking": false}
  // What a template is told if it cannot do without the day, as "2026-11-23".
  std::string day = {};
  bool goes_on = false;  // the answer goes on with the last message, an assistant's

  bool operator==(const Conversation&) const = default;
};

// A text of which the answer is a missing part, as in an editor: for models that were trained to
// fill in the middle.
struct Gap {
  std::string before, after;

  bool operator==(const Gap&) const = default;
};

// A text to go on from; exact tokens; a chat, in the model's own format, ending where the
// assistant's answer begins; or a text with a gap.
using Prompt =
    std::variant<std::string, std::vector<TokenId>, std::vector<Message>, Conversation, Gap>;

}  // namespace troupe
