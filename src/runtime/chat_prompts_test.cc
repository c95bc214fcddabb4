#include "runtime/chat_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_template.h"
#include "text/tiny_vocab_for_test.h"
#include "text/tokenizer.h"

namespace troupe {
namespace {

using testing::HasSubstr;

const std::vector<Message> kTalk = {{.role = "user", .content = "hello <tool> <|im_end|>"}};

Vocab With(std::string chat_template) {
  Vocab vocab = TinySentencePieceVocab();
  vocab.chat_template = std::move(chat_template);
  return vocab;
}

std::string TextOfAll(const std::vector<TextSegment>& segments) {
  std::string text;
  for (const TextSegment& segment : segments) text += segment.text;
  return text;
}

TEST(ChatPrompts, AFormatThatWeKnowIsWrittenByUs) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{{'<|im_start|>' + m.role}}{{'<|im_end|>'}}")).value();
  EXPECT_EQ(chat.name(), "chatml");
  EXPECT_EQ(chat.Render(kTalk).value(), RenderChat(ChatFormat::kChatMl, kTalk, true).value());
  EXPECT_EQ(chat.StopStrings(), ChatStopStrings(ChatFormat::kChatMl));
}

TEST(ChatPrompts, AnotherTemplateIsRunWithTheVocabularysSpecialTokens) {
  const ChatPrompts chat =
      ChatPrompts::Of(
          With("{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}"
               "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[answer]{% endif %}"))
          .value();
  const std::vector<TextSegment> segments = chat.Render(kTalk).value();
  // The tokenizer adds the token that begins a text by itself.
  EXPECT_EQ(TextOfAll(segments), "[user]hello <tool> <|im_end|></s>[answer]");
  EXPECT_THAT(std::string(chat.name()), HasSubstr("own template"));
}

TEST(ChatPrompts, WhatAUserWroteIsNeverASpecialToken) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{% for m in messages %}<tool>{{ m.content }}{% endfor %}")).value();
  const auto tokenizer = MakeTokenizer(TinySentencePieceVocab()).value();
  const std::vector<TokenId> tokens = tokenizer->EncodeSegments(chat.Render(kTalk).value()).value();
  const TokenId tool = tokenizer->Encode("<tool>", {.add_special = false}).value().back();
  EXPECT_EQ(std::ranges::count(tokens, tool), 1);
}

TEST(ChatPrompts, ATemplateSeesNoClock) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{% if strftime_now is defined %}today{% else %}any day{% endif %}"))
          .value();
  EXPECT_EQ(TextOfAll(chat.Render(kTalk).value()), "any day");
}

TEST(ChatPrompts, ATemplateMayRefuseMessages) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{{ raise_exception('roles must alternate') }}")).value();
  const Status status = chat.Render(kTalk).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("roles must alternate"));
}

TEST(ChatPrompts, ATemplateThatCannotBeReadIsAnErrorWithItsLine) {
  const Status status = ChatPrompts::Of(With("a\n{% for %}")).status();
  EXPECT_THAT(status.message(), HasSubstr("tokenizer.chat_template: line 2"));
}

}  // namespace
}  // namespace troupe
