#include "text/answer_parts/tools_in_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const Json kFindTool = *Json::Parse(R"([{"type": "function", "function": {"name": "find"}}])");

TEST(ToolsInText, TheListStandsInTheSystemsMessage) {
  const auto alone = WriteToolsAsText(std::vector<Message>{{"user", "hello"}}, kFindTool).value();
  ASSERT_EQ(alone.size(), 2u);
  EXPECT_EQ(alone[0].role, "system");
  EXPECT_THAT(alone[0].content, HasSubstr(R"({"type":"function","function":{"name":"find"}})"));
  const auto with_system =
      WriteToolsAsText(std::vector<Message>{{"system", "Be kind."}, {"user", "hello"}}, kFindTool)
          .value();
  ASSERT_EQ(with_system.size(), 2u);
  EXPECT_THAT(with_system[0].content, StartsWith("Be kind.\n\n# Tools"));
}

TEST(ToolsInText, CallsAndResultsBecomeTexts) {
  const std::vector<Message> talk = {
      {"user", "Where?"},
      {"assistant", "",
       R"({"tool_calls": [{"id": "1", "function": {"name": "find", "arguments": "{\"a\": 1}"}},
                          {"id": "2", "function": {"name": "find", "arguments": {"a": 2}}}]})"},
      {"tool", "here", R"({"tool_call_id": "1"})"},
      {"tool", "there", R"({"tool_call_id": "2"})"},
      {"user", "Thanks."}};
  const auto written = WriteToolsAsText(talk, Json()).value();
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[1].content,
            "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"a\": 1}}\n</tool_call>\n"
            "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"a\":2}}\n</tool_call>");
  EXPECT_EQ(written[2].role, "user");
  EXPECT_THAT(written[2].content, StartsWith("<tool_response>\nhere\n</tool_response>\n<tool"));
  EXPECT_THAT(written[2].content, EndsWith("\nThanks."));
}

TEST(ToolsInText, CallsThatAreNoneAreRefused) {
  const std::vector<Message> talk = {{"assistant", "", R"({"tool_calls": [{"id": "1"}]})"}};
  EXPECT_THAT(WriteToolsAsText(talk, Json()).status().message(), HasSubstr("function.name"));
}

}  // namespace
}  // namespace troupe
