#include "text/chat_format.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace troupe {
namespace {

constexpr struct {
  ChatFormat format;
  std::string_view name;
} kNames[] = {
    {ChatFormat::kPlain, "plain"},
    {ChatFormat::kChatMl, "chatml"},
    {ChatFormat::kLlama2, "llama2"},
    {ChatFormat::kLlama2System, "llama2-sys"},
    {ChatFormat::kLlama2SystemBos, "llama2-sys-bos"},
    {ChatFormat::kLlama2SystemStrip, "llama2-sys-strip"},
    {ChatFormat::kMistralV1, "mistral-v1"},
    {ChatFormat::kMistralV3, "mistral-v3"},
    {ChatFormat::kMistralV3Tekken, "mistral-v3-tekken"},
    {ChatFormat::kMistralV7, "mistral-v7"},
    {ChatFormat::kLlama3, "llama3"},
    {ChatFormat::kDeepseekCoder, "deepseek-coder"},
    {ChatFormat::kDeepseek, "deepseek"},
    {ChatFormat::kDeepseek3, "deepseek3"},
    {ChatFormat::kPhi3, "phi3"},
    {ChatFormat::kTulu, "tulu"},
};

std::string KnownFormats() {
  std::string list;
  for (const auto& known : kNames) {
    if (!list.empty()) list += ", ";
    list += known.name;
  }
  return list;
}

// "[INST]" is shared by Llama 2, by what was tuned on it, and by all that Mistral made.
ChatFormat RecogniseInstruct(std::string_view text) {
  const auto has = [text](std::string_view marker) {
    return text.find(marker) != std::string_view::npos;
  };
  if (has("[SYSTEM_PROMPT]")) return ChatFormat::kMistralV7;
  if (has("' [INST] ' + system_message") || has("[AVAILABLE_TOOLS]")) {
    if (has(" [INST]")) return ChatFormat::kMistralV1;
    return has("\"[INST]\"") ? ChatFormat::kMistralV3Tekken : ChatFormat::kMistralV3;
  }
  if (has("content.strip()")) return ChatFormat::kLlama2SystemStrip;
  if (has("bos_token + '[INST]")) return ChatFormat::kLlama2SystemBos;
  return has("<<SYS>>") ? ChatFormat::kLlama2System : ChatFormat::kLlama2;
}

}  // namespace

std::string_view Name(ChatFormat format) {
  const auto known = std::find_if(std::begin(kNames), std::end(kNames),
                                  [&](const auto& entry) { return entry.format == format; });
  TROUPE_CHECK(known != std::end(kNames));
  return known->name;
}

Result<ChatFormat> RecogniseChatFormat(std::string_view chat_template) {
  const auto has = [chat_template](std::string_view marker) {
    return chat_template.find(marker) != std::string_view::npos;
  };
  if (chat_template.empty()) return ChatFormat::kPlain;
  // Phi-4 and SmolVLM use ChatML's first marker for something else.
  if (has("<|im_start|>") && !has("<|im_sep|>") && !has("<end_of_utterance>")) {
    return ChatFormat::kChatMl;
  }
  if (has("[INST]")) return RecogniseInstruct(chat_template);
  if (has("<|assistant|>") && has("<|end|>")) return ChatFormat::kPhi3;
  // The line end is written out, in Jinja; others put none after the marker, or another end.
  if (has(R"(<|user|>\n)") && has(R"(<|assistant|>\n)") && has("eos_token") && !has("[gMASK]")) {
    return ChatFormat::kTulu;
  }
  if (has("### Instruction:") && has("<|EOT|>")) return ChatFormat::kDeepseekCoder;
  if (has("<|start_header_id|>") && has("<|end_header_id|>")) return ChatFormat::kLlama3;
  if (has("'Assistant: ' + message['content'] + eos_token")) return ChatFormat::kDeepseek;
  if (has("<｜Assistant｜>") && has("<｜User｜>") && has("<｜end▁of▁sentence｜>")) {
    return ChatFormat::kDeepseek3;
  }
  return Error(Code::kUnimplemented, "the model's chat template is none of those known: {}",
               KnownFormats());
}

}  // namespace troupe
