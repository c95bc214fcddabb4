// As chats of OpenAI's API read them.
#include "server/chat_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "server/openai_chat.h"

namespace troupe {
namespace {

TEST(ChatFields, AUsersMessageHasContentAndTheAssistantsMayHaveCallsAlone) {
  const auto error = [](const std::string& messages) {
    return ReadChatCall(R"({"messages":[)" + messages + "]}", Request()).status().message();
  };
  EXPECT_THAT(error(R"({"role":"user"})"),
              testing::StartsWith("request: messages[0]: no 'content'"));
  EXPECT_THAT(error(R"({"role":"user","content":null})"),
              testing::StartsWith("request: messages[0].content: "));
  EXPECT_EQ(
      error(R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f"}}]})"), "");
}

TEST(ChatFields, ThinkingIsReadAsOthersHaveIt) {
  const auto read = [](const std::string& thinking) {
    return ReadChatCall(
        R"({"messages":[{"role":"user","content":"a"}],"thinking":)" + thinking + "}", Request());
  };
  EXPECT_EQ(*read(R"({"type":"disabled"})")->ask.options.Find("enable_thinking"), Json(false));
  const auto on = read(R"({"type":"enabled","budget_tokens":100})");
  EXPECT_EQ(*on->ask.options.Find("enable_thinking"), Json(true));
  EXPECT_EQ(on->ask.most_reasoning, 100u);
  for (const char* wrong : {R"({"type":"much"})", "true", "{}", R"({"type":5})"}) {
    EXPECT_THAT(read(wrong).status().message(), testing::HasSubstr("thinking")) << wrong;
  }
}

TEST(ChatFields, OptionsOfATemplateAreFew) {
  const auto read = [](int options) {
    std::string body = R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{)";
    for (int i = 0; i < options; ++i) body += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
    return ReadChatCall(body + "}}", Request());
  };
  EXPECT_EQ(read(64)->ask.options.size(), 64u);
  EXPECT_THAT(read(65).status().message(), testing::HasSubstr("request: chat_template_kwargs: "));
}

TEST(ChatFields, FieldsWithoutWhichTheAnswerWouldBeWrongAreRefused) {
  const auto error = [](const std::string& field) {
    return ReadChatCall(R"({"messages":[{"role":"user","content":"a"}],)" + field + "}", Request())
        .status()
        .message();
  };
  for (const auto& [refused, usual] :
       {std::pair("echo", false), std::pair("add_special_tokens", false),
        std::pair("parse_tool_calls", true), std::pair("include_reasoning", true)}) {
    const auto said = [name = std::string(refused)](bool value) {
      return "\"" + name + "\":" + (value ? "true" : "false");
    };
    EXPECT_EQ(error(said(usual)), "");
    EXPECT_THAT(error(said(!usual)), testing::StartsWith(std::string("request: ") + refused));
  }
  EXPECT_THAT(error(R"("documents":[{"text":"a"}])"), testing::StartsWith("request: documents: "));
  EXPECT_EQ(error(R"("documents":[])"), "");
}

}  // namespace
}  // namespace troupe
