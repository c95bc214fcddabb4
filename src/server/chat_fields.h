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

// What becomes of pictures, sound and files, which no model of this server reads. Agents send a
// talk again with each request, so that a refusal would end it for good: they are told in their
// place.
enum class UnreadParts { kRefused, kNamed };

// A text, or an array of parts each of which has one of these types and a text.
std::string TextOfParts(const JsonValue& content, std::initializer_list<std::string_view> types,
                        UnreadParts unread = UnreadParts::kRefused);
// "[an image, which this model cannot see]"; nothing for a type that is none of these.
std::string_view NameOfUnread(std::string_view type);

// "messages" as OpenAI's chat API has them.
std::vector<Message> ReadOpenAiMessages(const JsonValue& list);

// The member of a call in an earlier answer: arguments are a JSON text, or the value itself.
Json CallJson(std::string id, std::string name, std::string arguments);
std::string ArgumentsIn(const JsonValue& arguments);

// "auto", "none", "required", or what names a function. `function_of`: the object that has its
// name.
void ReadToolChoice(const JsonValue& choice, bool nested, ChatAsk& ask);

// chat_template_kwargs, enable_thinking, thinking_budget under its three names, reasoning_effort,
// reasoning_format.
void ReadTemplateOptions(const JsonValue& body, ChatAsk& ask);
// An effort as the template's option; "none" turns thinking off.
void SetEffort(const JsonValue& effort, ChatAsk& ask);

}  // namespace troupe
