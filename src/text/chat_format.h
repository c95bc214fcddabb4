// The known formats of chat prompts, and how to recognise them. Models state theirs as a Jinja
// program. It is not run here (jinja/chat_prompt.h does that); the format is recognised by markers
// in the program's text.
#pragma once

#include <string_view>

#include "base/status.h"

namespace troupe {

enum class ChatFormat {
  kPlain,  // the contents, a line each: for models that state no format
  kChatMl,
  kLlama2,             // [INST], a system message is plain text
  kLlama2System,       // [INST] with <<SYS>>
  kLlama2SystemBos,    // and BOS before every later turn
  kLlama2SystemStrip,  // and contents without the blanks around them
  kMistralV1,
  kMistralV3,
  kMistralV3Tekken,
  kMistralV7,
  kLlama3,
  kDeepseekCoder,  // "### Instruction:"
  kDeepseek,       // "User: … Assistant: …": DeepSeek LLM, MoE and V2
  kDeepseek3,
  kPhi3,
  kTulu,  // OLMoE: "<|user|>", the end of an answer marked by "<|endoftext|>"
};

std::string_view Name(ChatFormat format);  // "chatml", as messages and --explain write it

// From the text of tokenizer.chat_template; no text is kPlain, a format we do not know is
// kUnimplemented with the names of those we do.
Result<ChatFormat> RecogniseChatFormat(std::string_view chat_template);

}  // namespace troupe
