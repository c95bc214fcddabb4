#include "text/answer_parts/tool_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

Result<ToolSet> ReadTools(const char* json) { return ToolSet::Of(*Json::Parse(json)); }

TEST(ToolSet, ReadsNamesSchemasAndStrictness) {
  const ToolSet tools = ReadTools(R"([{"type": "function", "function": {"name": "f", "strict": true,
      "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}},
      {"type": "function", "function": {"name": "g"}}])")
                            .value();
  ASSERT_EQ(tools.all().size(), 2u);
  EXPECT_TRUE(tools.Find("f")->is_strict);
  EXPECT_EQ(tools.Find("g")->parameters.Find("type")->AsString(), "object");
  EXPECT_EQ(tools.Find("h"), nullptr);
  EXPECT_TRUE(ToolSet::Of(Json()).value().empty());
}

TEST(ToolSet, WritesArgumentsAsTheirTypesSay) {
  const ToolSet tools = ReadTools(R"([{"type": "function", "function": {"name": "f", "parameters": {
      "type": "object", "properties": {"text": {"type": "string"}, "kind": {"enum": ["1", "2"]},
      "count": {"type": "integer"}}}}}])")
                            .value();
  EXPECT_EQ(tools.JsonOfArgument("f", "text", "12"), "\"12\"");
  EXPECT_EQ(tools.JsonOfArgument("f", "kind", "1"), "\"1\"");
  EXPECT_EQ(tools.JsonOfArgument("f", "count", "12"), "12");
  EXPECT_EQ(tools.JsonOfArgument("f", "count", "a \"b\""), R"("a \"b\"")");
  EXPECT_EQ(tools.JsonOfArgument("other", "x", "[1, 2]"), "[1,2]");
}

TEST(ToolSet, ReadsArgumentsTheSameWithoutWhatOnlyPromptsNeed) {
  const ToolSet tools = ReadTools(R"([{"type": "function", "function": {"name": "f", "parameters": {
      "type": "object", "properties": {"text": {"type": "string", "description": "A long one."},
      "kind": {"enum": ["1", "2"]}, "count": {"type": "integer"}}}}},
      {"type": "function", "function": {"name": "g", "strict": true}}])")
                            .value();
  const ToolSet slim = tools.ForReading();
  for (const char* key : {"text", "kind", "count", "none"}) {
    for (const char* value : {"12", "a \"b\"", "[1, 2]"}) {
      EXPECT_EQ(slim.JsonOfArgument("f", key, value), tools.JsonOfArgument("f", key, value)) << key;
    }
  }
  ASSERT_EQ(slim.all().size(), 2u);
  EXPECT_TRUE(slim.Find("g")->is_strict);
  EXPECT_EQ(slim.Find("f")->parameters.Dump().find("long"), std::string::npos);
  EXPECT_LT(slim.size_in_memory(), tools.size_in_memory());
  EXPECT_GT(slim.size_in_memory(), 3 * 300_B);
}

TEST(ToolSet, WhatIsNoToolIsRefusedByItsPlace) {
  EXPECT_THAT(ReadTools(R"([{"type": "web_search"}])").status().message(),
              HasSubstr("tools[0].type: \"web_search\""));
  EXPECT_THAT(ReadTools(R"([{"type": "function"}])").status().message(),
              HasSubstr("tools[0].function.name"));
  EXPECT_THAT(ReadTools(R"([{"type": "function", "function": {"name": "f"}},
                       {"type": "function", "function": {"name": "f"}}])")
                  .status()
                  .message(),
              HasSubstr("twice"));
  EXPECT_FALSE(ReadTools(R"({"a": 1})").ok());
}

}  // namespace
}  // namespace troupe
