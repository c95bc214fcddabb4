#include "server/chat_ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

const Json kFind = *Json::Parse(R"([{"type":"function","function":{"name":"find"}}])");

class PrepareChatTest : public testing::Test {
 protected:
  Result<AnswerReading> Prepare(const ChatAsk& ask, std::string chat_template = "",
                                std::optional<AnswerRule> rule = std::nullopt) {
    Vocab vocab = TinyByteLevelVocab();
    vocab.chat_template = std::move(chat_template);
    request_ = {};
    request_.rule = std::move(rule);
    return PrepareChat(ask, "2026-11-23", *tokenizer_, ChatPrompts::Of(vocab), request_);
  }
  std::string PromptText() const {
    return tokenizer_->Decode(std::get<std::vector<TokenId>>(request_.prompt)).value();
  }
  static ChatAsk Asking(Json tools = {}) {
    ChatAsk ask;
    ask.chat.messages = {{"user", "hello"}};
    ask.tools = std::move(tools);
    return ask;
  }

  std::unique_ptr<Tokenizer> tokenizer_ = MakeTokenizer(TinyByteLevelVocab()).value();
  Request request_;
};

TEST_F(PrepareChatTest, AChatWithoutToolsIsItsTextAlone) {
  const AnswerReading reading = Prepare(Asking()).value();
  EXPECT_EQ(PromptText(), "hello\n");
  EXPECT_FALSE(request_.rule || request_.show_marks);
  EXPECT_EQ(PartsOf(reading, "<tool_call>{}"),
            (std::vector<AnswerPart>{{.text = "<tool_call>{}", .name = {}}}));
}

TEST_F(PrepareChatTest, ToolsAreInThePromptAndTheirCallsFollowARule) {
  const AnswerReading reading = Prepare(Asking(kFind)).value();
  EXPECT_THAT(PromptText(), HasSubstr(R"("name":"find")"));
  EXPECT_TRUE(request_.show_marks);
  EXPECT_EQ(request_.rule->kind, AnswerRule::Kind::kGrammar);
  const auto parts = PartsOf(reading, R"(a<tool_call>{"name": "find"}</tool_call>)");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].name, "find");
  EXPECT_EQ(parts[1].text, "{}");
}

TEST_F(PrepareChatTest, ToolsThatMustNotBeCalledAreNotTold) {
  ChatAsk ask = Asking(kFind);
  ask.choice = ToolChoice::kNone;
  EXPECT_FALSE(Prepare(ask)->options.reads_calls);
  EXPECT_EQ(PromptText(), "hello\n");
}

TEST_F(PrepareChatTest, ARuleBeginsAfterTheReasoning) {
  constexpr const char* kOpens = "{{ messages[0].content }}<think>\n{# </think> #}";
  const AnswerReading reading =
      Prepare(Asking(), kOpens, AnswerRule{AnswerRule::Kind::kJsonObject, ""}).value();
  EXPECT_TRUE(reading.options.starts_in_reasoning);
  EXPECT_EQ(request_.rule->kind, AnswerRule::Kind::kGrammar);
  EXPECT_EQ(PartsOf(reading, "Hm.</think>{}")[1].text, "{}");
}

TEST_F(PrepareChatTest, ReasoningIsCountedAndLimitedWhereTheModelMarksIt) {
  constexpr const char* kOpens = "{{ messages[0].content }}<think>\n{# </think> #}";
  ChatAsk ask = Asking();
  ask.most_reasoning = 7;
  ASSERT_TRUE(Prepare(ask).ok());
  EXPECT_FALSE(request_.reasoning);
  ASSERT_TRUE(Prepare(ask, kOpens).ok());
  ASSERT_TRUE(request_.reasoning);
  EXPECT_TRUE(request_.reasoning->begun);
  EXPECT_EQ(request_.reasoning->most_tokens, 7u);
  EXPECT_EQ(request_.reasoning->end, "</think>");
  // A rule for all of the text has no place for an end.
  ask.parts_reasoning = false;
  ASSERT_TRUE(Prepare(ask, kOpens, AnswerRule{AnswerRule::Kind::kJsonObject, ""}).ok());
  EXPECT_FALSE(request_.reasoning);
}

TEST_F(PrepareChatTest, WhatCannotBeIsRefusedByItsField) {
  ChatAsk ask = Asking();
  ask.choice = ToolChoice::kRequired;
  EXPECT_THAT(Prepare(ask).status().message(), HasSubstr("request: tool_choice: "));
  ask.tools = kFind;
  ask.only = "other";
  EXPECT_THAT(Prepare(ask).status().message(), HasSubstr("there is no tool 'other'"));
  EXPECT_THAT(Prepare(Asking(*Json::Parse(R"([{"type":"x"}])"))).status().message(),
              HasSubstr("request: tools[0].type: "));
  EXPECT_THAT(Prepare(Asking(), "{{ raise_exception('no') }}").status().message(),
              HasSubstr("request: messages: "));
}

TEST(CallIds, AreOfTheAnswerTheChoiceAndTheCall) {
  EXPECT_EQ(CallId("chatcmpl-1f", 2, 3), "call_1f_2_3");
  EXPECT_EQ(CallId("msg_1f", 0, 0), "call_1f_0_0");
}

}  // namespace
}  // namespace troupe
