// Calls of tools through each API.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/service_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class ToolServiceTest : public ServiceTest {
 protected:
  void SetUp() override {
    Serve(Model::Open(kPath, {.context = 2048, .threads = 2, .answer_rules = true}).value());
  }
  static std::string Body(const std::string& fields, int seed, bool stream = false) {
    return fmt::format(R"({{"seed":{},"temperature":1.2,"stream":{},{}}})", seed, stream, fields);
  }
  static void ExpectArguments(const Json& arguments) {
    EXPECT_LE(arguments.Find("size")->AsCount(), 9u);
    const std::string colour = arguments.Find("colour")->AsString();
    EXPECT_TRUE(colour == "red" || colour == "green") << colour;
  }
};

constexpr const char* kThing =
    R"({"type":"object","properties":{"size":{"type":"integer","minimum":1,"maximum":9},)"
    R"("colour":{"enum":["red","green"]}},"required":["size","colour"],"additionalProperties":false})";

TEST_F(ToolServiceTest, ACallThatIsRequiredComesAsItsSchemaSays) {
  const std::string fields = fmt::format(
      R"("max_tokens":200,"messages":[{{"role":"user","content":"Paint!"}}],"tool_choice":"required",)"
      R"("parallel_tool_calls":false,"tools":[{{"type":"function","function":{{"name":"paint",)"
      R"("parameters":{}}}}}])",
      kThing);
  for (int seed = 0; seed < 6; ++seed) {
    const Json body = PostJson("/v1/chat/completions", Body(fields, seed));
    const Json& choice = (*body.Find("choices"))[0];
    EXPECT_EQ(choice.Find("finish_reason")->AsString(), "tool_calls");
    const Json& call = (*choice.Find("message")->Find("tool_calls"))[0];
    EXPECT_EQ(call.Find("function")->Find("name")->AsString(), "paint");
    ExpectArguments(*Json::Parse(call.Find("function")->Find("arguments")->AsString()));
  }
}

TEST_F(ToolServiceTest, ResponsesAndMessagesForceCallsToo) {
  const std::string responses = fmt::format(
      R"("max_output_tokens":200,"input":"Paint!","tool_choice":{{"type":"function","name":"paint"}},)"
      R"("parallel_tool_calls":false,"tools":[{{"type":"function","name":"paint","parameters":{}}}])",
      kThing);
  const std::string messages =
      fmt::format(R"("max_tokens":200,"messages":[{{"role":"user","content":"Paint!"}}],)"
                  R"("tool_choice":{{"type":"any","disable_parallel_tool_use":true}},)"
                  R"("tools":[{{"name":"paint","input_schema":{}}}])",
                  kThing);
  for (int seed = 0; seed < 4; ++seed) {
    const Json response = PostJson("/v1/responses", Body(responses, seed));
    EXPECT_EQ(response.Find("status")->AsString(), "completed");
    ExpectArguments(*Json::Parse((*response.Find("output"))[0].Find("arguments")->AsString()));
    const Json message = PostJson("/v1/messages", Body(messages, seed));
    EXPECT_EQ(message.Find("stop_reason")->AsString(), "tool_use");
    ExpectArguments(*(*message.Find("content"))[0].Find("input"));
  }
  EXPECT_THAT(Post("/v1/responses", Body(responses, 1, true))->body(),
              HasSubstr("event: response.function_call_arguments.done"));
  EXPECT_THAT(Post("/v1/messages", Body(messages, 1, true))->body(),
              HasSubstr(R"("type":"input_json_delta")"));
}

TEST_F(ToolServiceTest, WhatIsPassedOverIsCountedUnlessTheRequestNeedsIt) {
  const std::string tools =
      R"("max_output_tokens":2,"input":"Hi","tools":[{"type":"computer"},{"type":"function","name":"a"}])";
  EXPECT_EQ(Post("/v1/responses", Body(tools, 1))->status(), 200);
  EXPECT_THAT(Start("GET", "/metrics")->body(), HasSubstr("troupe_passed_over_total 1\n"));
  for (const char* choice :
       {R"({"type":"computer"})", R"({"type":"function","name":"computer"})"}) {
    const auto refused =
        Post("/v1/responses", Body(fmt::format(R"({},"tool_choice":{})", tools, choice), 1));
    EXPECT_EQ(refused->status(), 400);
    EXPECT_THAT(refused->body(), HasSubstr(R"("param":"tool_choice)"));
  }
}

TEST_F(ToolServiceTest, EventsOfAStreamAreNumberedInTheirOrder) {
  const std::string stream =
      Post("/v1/responses", R"({"input":"Hi","max_output_tokens":5,"stream":true})")->body();
  std::size_t at = 0;
  for (int number = 0; number < 6; ++number) {
    at = stream.find(fmt::format(R"("sequence_number":{},)", number), at);
    ASSERT_NE(at, stream.npos) << number << "\n" << stream;
  }
}

TEST_F(ToolServiceTest, TheResultOfACallIsReadBeforeTheNextAnswer) {
  const auto body = Post("/v1/chat/completions", R"({"max_tokens":5,"messages":[
      {"role":"user","content":"Paint!"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
        "function":{"name":"paint","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c","content":"done"}]})");
  EXPECT_EQ(body->status(), 200) << body->body();
}

TEST_F(ToolServiceTest, AnAnswerThatIsBegunIsGoneOnWith) {
  const auto count = [&](const char* more) {
    return PostJson("/v1/messages/count_tokens",
                    fmt::format(R"({{"messages":[{{"role":"user","content":"a"}}{}]}})", more))
        .Find("input_tokens")
        ->AsCount();
  };
  EXPECT_GT(count(R"(,{"role":"assistant","content":"It is"})"), count(""));
}

}  // namespace
}  // namespace troupe
