// Messages of a chat to the prompt that a model was trained on. Models state their format as a
// Jinja program; we run no programs from model files but recognise the well-known formats by the
// markers in it. What comes out is segments, so that the content of a message is never read as
// special tokens. BOS is the tokenizer's business (add_special), not part of the prompt.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/text_segment.h"

namespace troupe {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;

  bool operator==(const ChatMessage&) const = default;
};

enum class ChatFormat {
  kPlain,  // the contents, a line each: for models that state no format
  kChatMl,
  kLlama2,             // [INST], a system message is plain text
  kLlama2System,       // [INST] with <<SYS>>
  kLlama2SystemBos,    // and BOS before every later turn
  kLlama2SystemStrip,  // and contents without surrounding blanks
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

// From the text of tokenizer.chat_template; empty text is kPlain, a format we do not know
// kUnimplemented with the names of those we do.
Result<ChatFormat> RecogniseChatFormat(std::string_view chat_template);

// Fails on a role the format has no place for. add_generation_prompt: ends where the assistant's
// answer begins.
Result<std::vector<TextSegment>> RenderChat(ChatFormat format,
                                            std::span<const ChatMessage> messages,
                                            bool add_generation_prompt);

// Texts at which an answer ends even where the vocabulary does not say so (stop_strings.h).
std::vector<std::string> ChatStopStrings(ChatFormat format);

}  // namespace troupe
