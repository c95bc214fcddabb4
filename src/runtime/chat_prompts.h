// How the chats of a model become prompts: in a format that we know, or else by the template that
// the model carries, run as Hugging Face runs it. What only a template knows (tools, options, the
// calls of earlier answers) is written by it even where we know the format; for models without a
// word of tools they become text (tools_in_text.h). Immutable, for any number of threads.
#pragma once

#include <troupe/request.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/answer_parts/answer_style.h"
#include "text/chat_format.h"
#include "text/jinja/chat_prompt.h"
#include "text/text_segment.h"
#include "text/vocab.h"

namespace troupe {

struct RenderedChat {
  std::vector<TextSegment> segments;
  bool opens_reasoning = false;  // the answer begins within it
};

class ChatPrompts {
 public:
  // Fails if the model's template is in no format that we know, and is none that can be run.
  static Result<ChatPrompts> Of(const Vocab& vocab);
  static ChatPrompts In(ChatFormat format);

  std::string_view name() const;  // "chatml", or that it is the model's own template

  // Ends where the assistant's answer begins, or goes on. Fails for messages that the format or the
  // template refuses. A template that can do without the time is told none: a prompt depends on its
  // messages alone.
  Result<RenderedChat> Render(const Conversation& chat) const;

  // Texts at which an answer ends even where the vocabulary has no such token.
  std::vector<std::string> StopStrings() const;

  // How answers say what is more than text, and the special tokens that they say it with.
  const AnswerStyle& style() const { return style_; }
  std::span<const TokenId> marks() const { return marks_; }

 private:
  ChatPrompts() = default;

  bool TemplateWritesTools() const { return own_.has_value() && knows_tools_; }
  Result<RenderedChat> RenderFolded(const Conversation& chat) const;
  Result<std::vector<TextSegment>> RenderOwn(const Conversation& chat, bool begins_answer) const;
  Result<std::vector<TextSegment>> RenderAll(const Conversation& chat, bool begins_answer) const;
  bool RendersAtAll(bool with_day) const;
  bool WritesLateSystem() const;
  // Whether a call in an earlier answer is written, with null or an empty text as its content.
  bool WritesCalls(bool null_content) const;

  std::optional<ChatFormat> format_;    // for chats of messages alone
  std::optional<jinja::Template> own_;  // for the others, or for all
  bool knows_tools_ = false;
  bool calls_need_null_ = false;
  bool wants_short_ids_ = false;
  bool folds_late_system_ = false;
  bool needs_day_ = false;
  jinja::ChatPrompt special_;  // the vocabulary's special tokens, without messages
  AnswerStyle style_ = {.calls = GeneralCallMarks()};
  std::vector<TokenId> marks_;
};

}  // namespace troupe
