// How the chats of a model become prompts: in a format that we know, or else by the template that
// the model carries, run as Hugging Face runs it. Immutable, for any number of threads.
#pragma once

#include <troupe/request.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/chat_format.h"
#include "text/jinja/chat_prompt.h"
#include "text/text_segment.h"
#include "text/vocab.h"

namespace troupe {

class ChatPrompts {
 public:
  // Fails if the model's template is in no format that we know, and is none that can be run.
  static Result<ChatPrompts> Of(const Vocab& vocab);
  static ChatPrompts In(ChatFormat format);

  std::string_view name() const;  // "chatml", or that it is the model's own template

  // Ends where the assistant's answer begins. Fails for messages that the format or the template
  // refuses. A template is told no time: a prompt depends on its messages alone.
  Result<std::vector<TextSegment>> Render(std::span<const Message> messages) const;

  // Texts at which an answer ends even where the vocabulary has no such token.
  std::vector<std::string> StopStrings() const;

 private:
  ChatPrompts() = default;

  ChatFormat format_ = ChatFormat::kPlain;
  std::optional<jinja::Template> own_;  // in place of the format
  jinja::ChatPrompt special_;           // the vocabulary's special tokens, without messages
};

}  // namespace troupe
