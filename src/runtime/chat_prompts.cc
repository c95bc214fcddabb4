#include "runtime/chat_prompts.h"

#include <utility>

#include "text/chat_template.h"

namespace troupe {
namespace {

// Of a prompt that fits into any context that fits into memory beside a model; a template of a
// stranger's must not take more than the plan leaves.
constexpr jinja::RenderLimits kLimits = {
    .output_bytes = 8 << 20, .string_bytes = 8 << 20, .made_bytes = 24 << 20};

std::optional<std::string> TextOf(const Vocab& vocab, std::optional<TokenId> id) {
  if (!id) return std::nullopt;
  return vocab.tokens[static_cast<std::size_t>(*id)];
}

}  // namespace

Result<ChatPrompts> ChatPrompts::Of(const Vocab& vocab) {
  const Result<ChatFormat> format = RecogniseChatFormat(vocab.chat_template);
  if (format.ok()) return In(*format);
  ChatPrompts prompts;
  Result<jinja::Template> own = jinja::Template::Parse(vocab.chat_template);
  if (!own.ok()) return Status(own.status()).WithContext("tokenizer.chat_template");
  prompts.own_ = *std::move(own);
  prompts.special_ = {.bos_token = TextOf(vocab, vocab.bos),
                      .eos_token = TextOf(vocab, vocab.eos),
                      .unk_token = TextOf(vocab, vocab.unk),
                      .pad_token = TextOf(vocab, vocab.pad),
                      .tokenizer_adds_bos = vocab.add_bos,
                      .now = std::nullopt};
  return prompts;
}

ChatPrompts ChatPrompts::In(ChatFormat format) {
  ChatPrompts prompts;
  prompts.format_ = format;
  return prompts;
}

std::string_view ChatPrompts::name() const {
  return own_ ? "of the model's own template" : Name(format_);
}

Result<std::vector<TextSegment>> ChatPrompts::Render(std::span<const Message> messages) const {
  if (!own_) return RenderChat(format_, messages, /*add_generation_prompt=*/true);
  jinja::ChatPrompt prompt = special_;
  prompt.messages = jinja::MessagesToJson(messages);
  Result<std::vector<TextSegment>> segments = RenderChatPrompt(*own_, prompt, kLimits);
  if (!segments.ok()) return Status(segments.status()).WithContext("the model's chat template");
  return segments;
}

std::vector<std::string> ChatPrompts::StopStrings() const {
  return own_ ? std::vector<std::string>() : ChatStopStrings(format_);
}

}  // namespace troupe
