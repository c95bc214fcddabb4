// How answers of /v1/chat/completions are shown.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "server/openai_chat.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Of a chat with these fields beside its messages.
std::unique_ptr<AnswerFormat> ChatFormatFor(std::string_view fields, OpenAiHead head,
                                            AnswerReading reading = {}) {
  const std::string body =
      fmt::format(R"({{"messages":[{{"role":"user","content":"Hi"}}],{}}})", fields);
  return MakeChatFormat(ReadChatCall(body, {}).value(), std::move(head), std::move(reading));
}

ChoiceAnswer AnswerOf(std::string text) {
  ChoiceAnswer choice;
  choice.answer = {.text = std::move(text), .tokens = {1, 2}, .finish = FinishReason::kEndToken};
  choice.answer.usage.prompt_tokens = 3;
  choice.answer.usage.generated_tokens = 2;
  choice.answer.usage.reasoning_tokens = 1;
  return choice;
}

TEST(OpenAiChatFormat, AWholeAnswerHasItsChoicesAndUsage) {
  const auto format = ChatFormatFor(R"("n":2)", {.id = "i", .model = "m", .created = 9});
  const std::vector<ChoiceAnswer> answers = {AnswerOf("one"), AnswerOf("two")};
  const Json body = Json::Parse(format->Whole(answers).body).value();
  EXPECT_EQ(body.Find("object")->AsString(), "chat.completion");
  const Json& choices = *body.Find("choices");
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[1].Find("index")->AsCount(), 1u);
  EXPECT_EQ(choices[1].Find("message")->Find("content")->AsString(), "two");
  EXPECT_EQ(choices[1].Find("finish_reason")->AsString(), "stop");
  EXPECT_EQ(body.Find("usage")->Dump(),
            R"({"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,)"
            R"("prompt_tokens_details":{"cached_tokens":0},)"
            R"("completion_tokens_details":{"reasoning_tokens":2}})");
  EXPECT_NE(body.Find("troupe")->Find("expert_hits"), nullptr);
}

TEST(OpenAiChatFormat, AStreamBeginsWithTheRoleAndEndsWithReasonUsageAndDone) {
  const auto format = ChatFormatFor(R"("stream":true,"stream_options":{"include_usage":true})",
                                    {.id = "i", .model = "m", .created = 9});
  EXPECT_EQ(
      format->Open(),
      "data: {\"id\":\"i\",\"object\":\"chat.completion.chunk\",\"created\":9,\"model\":\"m\","
      "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
      "\"logprobs\":null,\"finish_reason\":null}]}\n\n");
  EXPECT_THAT(format->Delta(0, {.text = "a\nb", .tokens = {}}),
              HasSubstr(R"("delta":{"content":"a\nb"})"));
  const std::vector<ChoiceAnswer> answers = {AnswerOf("a\nb")};
  const std::string closed = format->Close(0, answers[0].answer);
  EXPECT_THAT(closed, HasSubstr(R"("delta":{},"logprobs":null,"finish_reason":"stop")"));
  EXPECT_THAT(closed, HasSubstr(R"("timings":{"cache_n":0,"prompt_n":3,)"));
  EXPECT_THAT(closed, HasSubstr(R"("troupe":{"seed":0,"shared_prefix_tokens":0,)"));
  const std::string last = format->Last(answers);
  EXPECT_THAT(last, HasSubstr(R"("choices":[],"usage":{"prompt_tokens":3)"));
  EXPECT_THAT(last, testing::EndsWith("data: [DONE]\n\n"));
}

TEST(OpenAiChatFormat, LogprobsComeWithTheirBytes) {
  const auto format =
      ChatFormatFor(R"("logprobs":true,"top_logprobs":1)", {.id = "i", .model = "m", .created = 9});
  ChoiceAnswer choice = AnswerOf("é");
  choice.tokens = {{.text = "\xc3\xa9", .logprob = -0.5, .top = {{.text = "e", .logprob = -1}}}};
  const std::string body = format->Whole({&choice, 1}).body;
  EXPECT_THAT(
      body,
      HasSubstr(
          R"("logprobs":{"content":[{"token":"é","logprob":-0.5,)"
          R"("bytes":[195,169],"top_logprobs":[{"token":"e","logprob":-1.0,"bytes":[101]}]}]})"));
}

TEST(OpenAiChatFormat, ProgressIsAnEventAndWaitingAComment) {
  const OpenAiHead head = {.id = "i", .model = "m", .created = 9};
  EXPECT_EQ(ChatFormatFor(R"("stream":true)", head)->Waiting(), ": waiting\n\n");
  EXPECT_THAT(ChatFormatFor(R"("return_progress":true)", head)->Progress(1, 2),
              HasSubstr(R"("prompt_progress":{"processed":1,"total":2})"));
}

TEST(OpenAiChatFormat, AFailureAmidAStreamIsAnEvent) {
  const auto format = ChatFormatFor(R"("stream":true)", {});
  EXPECT_THAT(format->Failure(Status(Code::kDataLoss, "disk")),
              HasSubstr(R"(data: {"error":{"message":"disk")"));
}

AnswerReading ReadingWithCalls() {
  AnswerReading reading;
  reading.style = {
      .reasoning_open = "<think>", .reasoning_close = "</think>", .calls = GeneralCallMarks()};
  reading.options = {.reads_reasoning = true, .reads_calls = true};
  return reading;
}

constexpr const char* kCallingText =
    R"(<think>Hm.</think>I look.<tool_call>{"name": "find", "arguments": {"a": 1}}</tool_call>)";

TEST(OpenAiChatFormat, ReasoningAndCallsHaveTheirFields) {
  const auto format = ChatFormatFor(R"("n":1)", {.id = "chatcmpl-7"}, ReadingWithCalls());
  const ChoiceAnswer choice = AnswerOf(kCallingText);
  const std::string body = format->Whole({&choice, 1}).body;
  EXPECT_THAT(body, HasSubstr(R"("content":"I look.","refusal":null,"reasoning_content":"Hm.",)"
                              R"("tool_calls":[{"id":"call_7_0_0","type":"function","function":)"
                              R"({"name":"find","arguments":"{\"a\": 1}"}}]})"));
  EXPECT_THAT(body, HasSubstr(R"("finish_reason":"tool_calls")"));
  const ChoiceAnswer silent = AnswerOf(R"(<tool_call>{"name": "find"}</tool_call>)");
  EXPECT_THAT(format->Whole({&silent, 1}).body, HasSubstr(R"("content":null)"));
}

TEST(OpenAiChatFormat, AStreamTellsCallsByTheirIndex) {
  const auto format = ChatFormatFor(R"("stream":true)", {.id = "chatcmpl-7"}, ReadingWithCalls());
  std::string events;
  for (const char c : std::string_view(kCallingText)) {
    events += format->Delta(0, {.text = {&c, 1}, .tokens = {}});
  }
  events += format->Close(0, AnswerOf(kCallingText).answer);
  EXPECT_THAT(events, HasSubstr(R"("delta":{"reasoning_content":"H"})"));
  EXPECT_THAT(events, HasSubstr(R"("delta":{"content":"I"})"));
  EXPECT_THAT(events,
              HasSubstr(R"("delta":{"tool_calls":[{"index":0,"id":"call_7_0_0","type":"function",)"
                        R"("function":{"name":"find","arguments":""}}]})"));
  EXPECT_THAT(events,
              HasSubstr(R"("delta":{"tool_calls":[{"index":0,"function":{"arguments":"1"}}]})"));
  EXPECT_THAT(events, HasSubstr(R"("finish_reason":"tool_calls")"));
}

}  // namespace
}  // namespace troupe
