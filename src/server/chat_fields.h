// The fields of a request that are about a chat, its tools and its template, which the APIs share
// or which need more than a line. What is not done is refused by its place.
#pragma once

#include <string>
#include <vector>

#include "base/json_value.h"
#include "server/chat_ask.h"

namespace troupe {

inline constexpr std::size_t kMostMessages = 1 << 16;
inline constexpr std::size_t kMostTokensAsked = 1 << 24;

// What becomes of pictures, sound, files and whatever else no model of this server reads. Agents
// send a talk again with each request, so that a refusal would end it for good: they are told in
// their place.
enum class UnreadParts { kRefused, kNamed };

// A text, or an array of parts each of which has one of these types and a text.
std::string TextOfParts(const JsonValue& content, std::initializer_list<std::string_view> types,
                        UnreadParts unread = UnreadParts::kRefused);
// Of a part that has another type: the text within it, or its name: "[an image, which this model
// cannot see]".
std::string TextInPlaceOf(const JsonValue& part);
// Notes something of a type that this server does not know, and goes on without it. `what`: "a
// tool".
void PassOver(std::string_view what, std::string_view type, ChatAsk& ask);

// "messages" as OpenAI's chat API has them, into ask.chat.
void ReadOpenAiMessages(const JsonValue& list, ChatAsk& ask);

// The member of a call in an earlier answer: arguments are a JSON text, or the value itself.
Json CallJson(std::string id, std::string name, std::string arguments);
std::string ArgumentsIn(const JsonValue& arguments);

// "auto", "none", "required", what names a function, or the tools that are allowed: ask.tools then
// keeps these alone. `nested`: as the chat API has it, where each has an object of its own.
void ReadToolChoice(const JsonValue& choice, bool nested, ChatAsk& ask);

// chat_template_kwargs, enable_thinking, thinking_budget under its three names, reasoning_effort,
// reasoning_format.
void ReadTemplateOptions(const JsonValue& body, ChatAsk& ask);
// "thinking" as Anthropic has it, and others in their chats: {"type", "budget_tokens"}, the second
// below `max_tokens`.
void ReadThinking(const JsonValue& thinking, std::size_t max_tokens, ChatAsk& ask);
// An effort as the template's option; "none" turns thinking off.
void SetEffort(const JsonValue& effort, ChatAsk& ask);

}  // namespace troupe
