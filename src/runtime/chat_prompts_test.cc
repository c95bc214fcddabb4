#include "runtime/chat_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

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
  EXPECT_EQ(chat.Render({.messages = kTalk})->segments,
            RenderChat(ChatFormat::kChatMl, kTalk, true).value());
  EXPECT_EQ(chat.StopStrings(), ChatStopStrings(ChatFormat::kChatMl));
}

TEST(ChatPrompts, AnotherTemplateIsRunWithTheVocabularysSpecialTokens) {
  const ChatPrompts chat =
      ChatPrompts::Of(
          With("{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}"
               "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[answer]{% endif %}"))
          .value();
  const std::vector<TextSegment> segments = chat.Render({.messages = kTalk})->segments;
  // The tokenizer adds the token that begins a text by itself.
  EXPECT_EQ(TextOfAll(segments), "[user]hello <tool> <|im_end|></s>[answer]");
  EXPECT_THAT(std::string(chat.name()), HasSubstr("own template"));
}

TEST(ChatPrompts, WhatAUserWroteIsNeverASpecialToken) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{% for m in messages %}<tool>{{ m.content }}{% endfor %}")).value();
  const auto tokenizer = MakeTokenizer(TinySentencePieceVocab()).value();
  const std::vector<TokenId> tokens =
      tokenizer->EncodeSegments(chat.Render({.messages = kTalk})->segments).value();
  const TokenId tool = tokenizer->Encode("<tool>", {.add_special = false}).value().back();
  EXPECT_EQ(std::ranges::count(tokens, tool), 1);
}

TEST(ChatPrompts, ATemplateSeesNoClock) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{% if strftime_now is defined %}today{% else %}any day{% endif %}"))
          .value();
  EXPECT_EQ(TextOfAll(chat.Render({.messages = kTalk})->segments), "any day");
}

TEST(ChatPrompts, ATemplateThatCannotDoWithoutTheDayIsToldIt) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{{ strftime_now('%d %B %Y') }}: {{ messages[0].content }}")).value();
  Conversation asked = {.messages = {{"user", "a"}}, .day = "2026-11-23"};
  EXPECT_EQ(TextOfAll(chat.Render(asked).value().segments), "23 November 2026: a");
  asked.day = "today";
  EXPECT_THAT(chat.Render(asked).status().message(), HasSubstr("day: 'today'"));
}

TEST(ChatPrompts, ATemplateMayRefuseMessages) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{{ raise_exception('roles must alternate') }}")).value();
  const Status status = chat.Render({.messages = kTalk}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("roles must alternate"));
}

TEST(ChatPrompts, ATemplateThatCannotBeReadIsAnErrorWithItsLine) {
  const Status status = ChatPrompts::Of(With("a\n{% for %}")).status();
  EXPECT_THAT(status.message(), HasSubstr("tokenizer.chat_template: line 2"));
}

// A format that we know, with a template that knows of tools and thoughts.
constexpr const char* kToolTemplate =
    "{% for t in tools or [] %}[tool {{ t.function.name }}]{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}{{ c.function.arguments.a }}"
    "</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking %}<think>\n{% endif %}{% endif %}";

std::string TextIn(const ChatPrompts& chat, const Conversation& asked) {
  return TextOfAll(chat.Render(asked).value().segments);
}

TEST(ChatPrompts, ToolsAreWrittenByTheTemplateWhereItKnowsThem) {
  const ChatPrompts chat = ChatPrompts::Of(With(kToolTemplate)).value();
  EXPECT_EQ(chat.name(), "chatml");
  const Conversation asked = {
      .messages = {{"user", "a"},
                   {"assistant", "", R"({"tool_calls": [{"function": {"name": "f",
                                          "arguments": "{\"a\": 5}"}}]})"},
                   {"tool", "b"}},
      .tools = R"([{"type": "function", "function": {"name": "f"}}])"};
  EXPECT_EQ(TextIn(chat, asked),
            "[tool f]<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<tool_call>f5"
            "</tool_call><|im_end|>\n<|im_start|>tool\nb<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(chat.style().calls.syntax, CallSyntax::kJson);
}

TEST(ChatPrompts, ToolsBecomeTextWhereNoTemplateKnowsThem) {
  const ChatPrompts chat = ChatPrompts::In(ChatFormat::kChatMl);
  const std::string text =
      TextIn(chat, {.messages = {{"user", "a"}, {"tool", "b"}},
                    .tools = R"([{"type": "function", "function": {"name": "f"}}])"});
  EXPECT_THAT(text, HasSubstr(R"("name":"f")"));
  EXPECT_THAT(text, HasSubstr("<|im_start|>user\n<tool_response>\nb\n</tool_response>"));
  EXPECT_EQ(chat.style().calls, GeneralCallMarks());
}

TEST(ChatPrompts, OptionsReachTheTemplateAndMayOpenReasoning) {
  const ChatPrompts chat =
      ChatPrompts::Of(With(std::string(kToolTemplate) + "{# </think> #}")).value();
  const Conversation plain = {.messages = kTalk};
  EXPECT_FALSE(chat.Render(plain).value().opens_reasoning);
  const Conversation thinking = {.messages = kTalk, .options = R"({"enable_thinking": true})"};
  EXPECT_TRUE(chat.Render(thinking).value().opens_reasoning);
  const Conversation broken = {.messages = kTalk, .options = "5"};
  EXPECT_THAT(chat.Render(broken).status().message(), HasSubstr("chat_template_kwargs"));
}

TEST(ChatPrompts, AnAnswerThatIsBegunIsGoneOnWith) {
  const Conversation asked = {.messages = {{"user", "a"}, {"assistant", "It is "}},
                              .goes_on = true};
  const std::string expected = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nIt is";
  EXPECT_EQ(TextIn(ChatPrompts::In(ChatFormat::kChatMl), asked), expected);
  EXPECT_EQ(TextIn(ChatPrompts::Of(With(kToolTemplate)).value(), asked), expected);
  Conversation with_options = asked;
  with_options.options = "{}";
  EXPECT_EQ(TextIn(ChatPrompts::Of(With(kToolTemplate)).value(), with_options), expected);
  const ChatPrompts deaf = ChatPrompts::Of(With("{{ messages[0].content }}!")).value();
  EXPECT_THAT(deaf.Render(asked).status().message(), HasSubstr("cannot be gone on with"));
}

TEST(ChatPrompts, CallsHaveTheContentAndTheIdsThatTheTemplateTakes) {
  const ChatPrompts chat =
      ChatPrompts::Of(
          With("{% for m in messages %}{% if m.content is none %}[TOOL_CALLS]"
               "{% for c in m.tool_calls %}{% if c.id|length != 9 %}{{ raise_exception('id') }}"
               "{% endif %}{{ c.function.name }}{% endfor %}{% else %}{{ m.content }}{% endif %}"
               "{% endfor %}{{ tools }}"))
          .value();
  const Conversation asked = {.messages = {{"user", "a"}, {"assistant", "", R"({"tool_calls": [
                                        {"id": "toolu_017", "function": {"name": "f"}}]})"}}};
  EXPECT_EQ(TextIn(chat, asked), "a[TOOL_CALLS]fNone");
}

TEST(ChatPrompts, CallsHaveTheirNumbersWhereTheTemplatesAnswersHaveThem) {
  const ChatPrompts chat =
      ChatPrompts::Of(With("{% for m in messages %}{{ m.content }}{{ m.tool_call_id }}"
                           "{% for c in m.tool_calls %}<|tool_calls_section_begin|>{{ c.id }};"
                           "{% endfor %}{% endfor %}{{ tools }}"))
          .value();
  const Conversation asked = {
      .messages = {{"assistant", "", R"({"tool_calls": [{"id": "b", "function": {"name": "f"}}]})"},
                   {"tool", "=", R"({"tool_call_id": "b"})"},
                   {"assistant", "", R"({"tool_calls": [{"id": "a", "function": {"name": "f"}},
                                                        {"id": "c", "function": {"name": "g"}}]})"},
                   {"tool", "=", R"({"tool_call_id": "c"})"},
                   {"tool", "=", R"({"tool_call_id": "unknown"})"}}};
  const std::string mark = "<|tool_calls_section_begin|>";
  EXPECT_EQ(TextIn(chat, asked), mark + "functions.f:0;=functions.f:0" + mark + "functions.f:1;" +
                                     mark + "functions.g:2;=functions.g:2=unknownNone");
}

std::string TemplateOf(const std::string& model) {
  std::ifstream file(TROUPE_SOURCE_DIR "/tests/data/chat_templates/" + model + ".jinja");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// As Claude Code counts down its tokens after each result of a tool.
const Conversation kCountdown = {
    .messages = {{"system", "Be brief."},
                 {"user", "Look."},
                 {"assistant", "",
                  R"({"tool_calls":[{"id":"toolu_1","type":"function","function":)"
                  R"({"name":"find","arguments":"{}"}}]})"},
                 {"tool", "a.txt", R"({"tool_call_id":"toolu_1"})"},
                 {"system", "900 tokens are left."}},
    .tools = R"([{"type":"function","function":{"name":"find","description":"d","parameters":)"
             R"({"type":"object","properties":{}}}}])"};

TEST(ChatPrompts, WhatTheSystemSaysLateIsReadWhereTheTemplateRefusesIt) {
  const ChatPrompts strict =
      ChatPrompts::Of(With(TemplateOf("mistralai-Mistral-Nemo-Instruct-2407"))).value();
  const std::string folded = TextIn(strict, kCountdown);
  EXPECT_THAT(folded, testing::ContainsRegex("a\\.txt.*900 tokens are left\\."));
  // One that writes it is left to: as a message of the system's, in its place.
  const ChatPrompts lenient = ChatPrompts::Of(With(TemplateOf("Qwen-Qwen2.5-7B-Instruct"))).value();
  EXPECT_THAT(TextIn(lenient, kCountdown),
              HasSubstr("<|im_start|>system\n900 tokens are left.<|im_end|>"));
}

TEST(ChatPrompts, WhatTheSystemSaysLateChangesNothingBeforeIt) {
  for (const char* model : {"mistralai-Mistral-Nemo-Instruct-2407", "deepseek-ai-DeepSeek-V3.1",
                            "Qwen-Qwen2.5-7B-Instruct", "Qwen3-Coder", "openai-gpt-oss-120b",
                            "ibm-granite-granite-3.3-2B-Instruct", "GLM-4.6"}) {
    const ChatPrompts chat = ChatPrompts::Of(With(TemplateOf(model))).value();
    Conversation late = kCountdown;
    late.day = "2026-11-24";
    const std::string text = TextIn(chat, late);
    const std::size_t at = text.find("900 tokens");
    ASSERT_NE(at, text.npos) << model;
    late.messages.back().content = "800 tokens are left.";
    EXPECT_EQ(TextIn(chat, late).substr(0, at), text.substr(0, at)) << model;
    EXPECT_THAT(text.substr(0, at), HasSubstr("a.txt")) << model;
  }
}

TEST(ChatPrompts, SpecialTokensThatMarkPartsOfAnAnswerAreFound) {
  Vocab vocab = With(kToolTemplate);
  vocab.tokens.back() = "<tool_call>";
  vocab.types.back() = TokenType::kControl;
  const ChatPrompts chat = ChatPrompts::Of(vocab).value();
  EXPECT_THAT(chat.marks(), testing::ElementsAre(static_cast<TokenId>(vocab.tokens.size() - 1)));
}

}  // namespace
}  // namespace troupe
