// The prompt of a chat, written by the model's own template: makes of messages, tools and options
// the values that Hugging Face's apply_chat_template gives to a template. chat_template.h writes
// the prompts of models that carry no template.
#pragma once

#include <troupe/request.h>

#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/jinja/template.h"
#include "text/text_segment.h"

namespace troupe::jinja {

struct ChatPrompt {
  // Objects as OpenAI's API has them: role, content (a text, parts or null), tool_calls, and
  // whatever else a template asks for. Arguments of calls that are JSON in a string become an
  // object.
  Json messages = Json::Array();
  Json tools;                         // an array of tools, or null
  Json options = Json::Object();      // become names: enable_thinking, reasoning_effort, documents
  bool add_generation_prompt = true;  // ends where the assistant's answer begins

  // Texts of the vocabulary's special tokens; nothing where it has none.
  std::optional<std::string> bos_token, eos_token, unk_token, pad_token;
  bool tokenizer_adds_bos = false;  // then the prompt is without the one that the template writes
  std::optional<std::tm> now;       // what strftime_now tells; nothing: there is no such function
};

// With the members of Message::more beside role and content. kInvalidArgument if that is no object.
Result<Json> MessagesToJson(std::span<const Message> messages);

// What users and tools wrote is never read as special tokens. Roles are the template's where they
// are known ones: some templates build special tokens of them.
Result<std::vector<TextSegment>> RenderChatPrompt(const Template& chat_template,
                                                  const ChatPrompt& prompt,
                                                  const RenderLimits& limits = {});

}  // namespace troupe::jinja
