#include "server/anthropic_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "server/answer_costs.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHello =
    R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hello"}])";

MessagesCall ReadMessages(std::string_view body) {
  return ReadMessagesCall(body, MessagesKind::kAnswer, {}).value();
}

std::string ErrorOfMessages(std::string_view body) {
  const Result<MessagesCall> call = ReadMessagesCall(body, MessagesKind::kAnswer, {});
  EXPECT_FALSE(call.ok()) << body;
  return call.ok() ? "" : call.status().message();
}

ChoiceAnswer Ended(FinishReason finish, std::string stopped_by = "") {
  ChoiceAnswer choice;
  choice.answer.text = "Hi";
  choice.answer.finish = finish;
  choice.answer.stopped_by = std::move(stopped_by);
  choice.answer.usage.generated_tokens = 2;
  return choice;
}

TEST(AnthropicMessages, TheSystemComesFirstAndBlocksAreOneText) {
  const MessagesCall call = ReadMessages(R"({"max_tokens":5,"system":[{"type":"text","text":"Be"},
      {"type":"text","text":"brief.","cache_control":{"type":"ephemeral"}}],
      "messages":[{"role":"user","content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]},
                  {"role":"assistant","content":"Yes?"}],
      "stop_sequences":["END"],"temperature":0,"top_k":3})");
  EXPECT_THAT(call.ask.chat.messages,
              ElementsAre(Message{"system", "Be\nbrief."}, Message{"user", "Hello"},
                          Message{"assistant", "Yes?"}));
  EXPECT_EQ(call.request.max_tokens, 5u);
  EXPECT_THAT(call.request.stop, ElementsAre("END"));
  EXPECT_EQ(call.request.sampling.top_k, 3u);
}

TEST(AnthropicMessages, TheBlockThatSaysWhoPaysIsReadByNobody) {
  const MessagesCall call = ReadMessages(R"({"max_tokens":5,"system":[
      {"type":"text","text":"x-anthropic-billing-header: cc_version=2; cch=a81f;"},
      {"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":"Hello"}]})");
  EXPECT_EQ(call.ask.chat.messages[0].content, "Be brief.");
}

TEST(AnthropicMessages, WhatIsWrongIsNamedByItsField) {
  EXPECT_THAT(ErrorOfMessages("{}"), HasSubstr("no 'messages'"));
  EXPECT_THAT(ErrorOfMessages(R"({"messages":[{"role":"user","content":"a"}]})"),
              HasSubstr("no 'max_tokens'"));
  EXPECT_THAT(ErrorOfMessages(R"({"max_tokens":1,"messages":[{"role":"king","content":"a"}]})"),
              HasSubstr("messages[0].role: "));
  EXPECT_THAT(
      ErrorOfMessages(R"({"max_tokens":1,"messages":[{"role":"user","content":[{"type":5}]}]})"),
      HasSubstr("messages[0].content[0].type: "));
  EXPECT_THAT(ErrorOfMessages(std::string(kHello) + R"(,"stop_sequences":[""]})"),
              HasSubstr("stop_sequences[0]: "));
  EXPECT_THAT(ErrorOfMessages(std::string(kHello) + R"(,"tools":[{"name":"a"}]})"),
              HasSubstr("tools[0]: no 'input_schema'"));
}

TEST(AnthropicMessages, WhatNoModelHereReadsIsNamedInItsPlaceAndEndsNoTalk) {
  const MessagesCall call = ReadMessages(R"({"max_tokens":5,"messages":[
      {"role":"user","content":[{"type":"text","text":"See: "},
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},
        {"type":"document","source":{"type":"text","media_type":"text/plain","data":" and read."}}]},
      {"role":"assistant","content":[
        {"type":"server_tool_use","id":"s","name":"web_search","input":{}},
        {"type":"web_search_tool_result","tool_use_id":"s","content":[]},
        {"type":"tool_use","id":"t1","name":"look","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
        {"type":"text","text":"a.png: "},
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}]}]})");
  const std::vector<Message>& talk = call.ask.chat.messages;
  ASSERT_EQ(talk.size(), 3u);
  EXPECT_EQ(talk[0].content, "See: [an image, which this model cannot see] and read.");
  EXPECT_EQ(talk[1].content, "");
  EXPECT_THAT(talk[1].more, HasSubstr("look"));
  EXPECT_EQ(talk[2].content, "a.png: [an image, which this model cannot see]");
}

TEST(AnthropicMessages, BlocksOfLaterKindsEndNoTalk) {
  const MessagesCall call = ReadMessages(R"({"max_tokens":5,"messages":[
      {"role":"user","content":[{"type":"text","text":"Find it. "},{"type":"smell"},
        {"type":"search_result","source":"https://a.example","title":"A",
         "content":[{"type":"text","text":"Found."}],"citations":{"enabled":true}}]},
      {"role":"assistant","content":[{"type":"container_upload","file_id":"f"},
        {"type":"tool_use","id":"t1","name":"search","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
        {"type":"tool_reference","tool_name":"get_weather"},{"type":"smell"}]}]}],
    "tools":[{"type":"tool_search_tool_regex_20251119","name":"search"},
      {"name":"get_weather","input_schema":{"type":"object"},"defer_loading":true}]})");
  const std::vector<Message>& talk = call.ask.chat.messages;
  ASSERT_EQ(talk.size(), 3u);
  EXPECT_EQ(talk[0].content,
            "Find it. [smell, which this model cannot read]A\nhttps://a.example\nFound.");
  EXPECT_EQ(talk[2].content, "[the tool get_weather][smell, which this model cannot read]");
  EXPECT_EQ(call.ask.tools.size(), 1u);
  EXPECT_THAT(call.ask.passed_over,
              ElementsAre("a block of type 'container_upload'",
                          "a tool of type 'tool_search_tool_regex_20251119'"));
}

TEST(AnthropicMessages, ARequestForToolsOfAnthropicsOwnAloneIsRefusedByTheirType) {
  for (const char* type : {"web_search_20250305", "bash_20250124", "mcp_toolset"}) {
    EXPECT_THAT(
        ErrorOfMessages(fmt::format(
            R"({},"tools":[{{"type":"{}","name":"a","input_schema":{{}}}}]}})", kHello, type)),
        AllOf(HasSubstr("tools[0].type: "), HasSubstr(type)));
  }
  EXPECT_THAT(ErrorOfMessages(std::string(kHello) + R"(,"mcp_servers":[{"url":"u"}]})"),
              HasSubstr("mcp_servers: "));
  EXPECT_EQ(ReadMessages(std::string(kHello) +
                         R"(,"tools":[{"type":"custom","name":"a","input_schema":{}}]})")
                .ask.tools.size(),
            1u);
}

TEST(AnthropicMessages, AnAnswerMayHaveToFollowASchemaAndToThinkHard) {
  const AnswerRule integer = {AnswerRule::Kind::kJsonSchema, R"({"type":"integer"})"};
  const std::string format = R"({"type":"json_schema","schema":{"type":"integer"}})";
  const MessagesCall call = ReadMessages(
      fmt::format(R"({},"output_config":{{"format":{},"effort":"max"}}}})", kHello, format));
  EXPECT_EQ(call.request.rule, integer);
  EXPECT_EQ(call.ask.options.Dump(), R"({"reasoning_effort":"high"})");
  EXPECT_EQ(ReadMessages(fmt::format(R"({},"output_format":{}}})", kHello, format)).request.rule,
            integer);
  EXPECT_THAT(
      ErrorOfMessages(fmt::format(R"({},"output_config":{{"format":{{"type":"xml"}}}}}})", kHello)),
      HasSubstr("output_config.format.type: "));
  EXPECT_THAT(ErrorOfMessages(fmt::format(R"({},"output_config":{{"effort":"huge"}}}})", kHello)),
              HasSubstr("output_config.effort: "));
  EXPECT_THAT(
      ErrorOfMessages(fmt::format(R"({},"output_format":{},"output_config":{{"format":{}}}}})",
                                  kHello, format, format)),
      HasSubstr("output_config.format: "));
}

TEST(AnthropicMessages, ACountNeedsNoLength) {
  EXPECT_TRUE(
      ReadMessagesCall(R"({"messages":[{"role":"user","content":"a"}]})", MessagesKind::kCount, {})
          .ok());
}

TEST(AnthropicMessages, AStreamHasItsEventsInTheOrderThatClientsExpect) {
  MessagesCall call = ReadMessages(std::string(kHello) + R"(,"stream":true})");
  call.prompt_tokens = 7;
  const auto format = MakeMessagesFormat(call, {.id = "msg_1", .model = "m"});
  ChoiceAnswer choice = Ended(FinishReason::kLength);
  choice.answer.usage.cached_tokens = 3;
  std::string stream = format->Open();
  stream += format->Delta(0, {.text = "Hi", .tokens = {}});
  stream += format->Close(0, choice.answer);
  stream += format->Last({&choice, 1});
  EXPECT_EQ(
      stream,
      "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","
      "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":"
      "null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":7,\"cache_creation_input_tokens\":0,"
      "\"cache_read_input_tokens\":0,\"output_tokens\":0}}}\n\n"
      "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
      "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
      "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
      "\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n"
      "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
      "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
      "\"max_tokens\",\"stop_sequence\":null},\"usage\":{\"input_tokens\":4,"
      "\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":3,\"output_tokens\":2},"
      "\"troupe\":" +
          TroupeJson(choice.answer.usage, 0).Dump() +
          "}\n\n"
          "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
  EXPECT_EQ(format->Waiting(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  EXPECT_EQ(format->Progress(1, 2),
            "event: ping\ndata: {\"type\":\"ping\",\"prompt_progress\":{\"processed\":1,"
            "\"total\":2}}\n\n");
}

TEST(AnthropicMessages, AStopSequenceIsNamedIfItIsTheClients) {
  const MessagesCall call = ReadMessages(std::string(kHello) + R"(,"stop_sequences":["END"]})");
  const auto format = MakeMessagesFormat(call, {.id = "i", .model = "m"});
  const ChoiceAnswer own = Ended(FinishReason::kStopString, "END");
  EXPECT_THAT(format->Whole({&own, 1}).body,
              HasSubstr(R"("stop_reason":"stop_sequence","stop_sequence":"END")"));
  const ChoiceAnswer chats = Ended(FinishReason::kStopString, "<|im_end|>");
  EXPECT_THAT(format->Whole({&chats, 1}).body,
              HasSubstr(R"("stop_reason":"end_turn","stop_sequence":null)"));
}

TEST(AnthropicMessages, ErrorsHaveTheirShape) {
  const auto format = MakeMessagesFormat(ReadMessages(std::string(kHello) + "}"), {});
  EXPECT_THAT(format->Failure(Status(Code::kDataLoss, "disk")),
              HasSubstr("event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"disk\""));
  EXPECT_EQ(format->Refusal(Status(Code::kInvalidArgument, "a")).status, 400);
}

TEST(AnthropicMessages, CallsTheirResultsAndThoughtsAreMessagesOfTheChat) {
  const MessagesCall call = ReadMessages(R"({"max_tokens":50,"messages":[
      {"role":"user","content":"Where?"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":""},
        {"type":"text","text":"I look."},
        {"type":"tool_use","id":"t1","name":"find","input":{"a":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,
        "content":[{"type":"text","text":"gone"}]},{"type":"text","text":"And?"}]}],
      "tools":[{"name":"find","description":"d","input_schema":{"type":"object"}}],
      "tool_choice":{"type":"tool","name":"find","disable_parallel_tool_use":true},
      "thinking":{"type":"enabled","budget_tokens":20}})");
  EXPECT_THAT(
      call.ask.chat.messages,
      ElementsAre(
          Message{"user", "Where?"},
          Message{"assistant", "I look.",
                  R"({"reasoning_content":"Hm.","tool_calls":[{"id":"t1","type":"function",)"
                  R"("function":{"name":"find","arguments":"{\"a\":1}"}}]})"},
          Message{"tool", "Error: gone", R"({"tool_call_id":"t1"})"}, Message{"user", "And?"}));
  EXPECT_EQ(call.ask.tools.Dump(),
            R"([{"type":"function","function":{"name":"find","description":"d",)"
            R"("parameters":{"type":"object"}}}])");
  EXPECT_EQ(call.ask.only, "find");
  EXPECT_FALSE(call.ask.parallel);
  EXPECT_EQ(call.ask.options.Dump(), R"({"enable_thinking":true,"thinking_budget":20})");
  EXPECT_EQ(call.ask.most_reasoning, 20u);
  EXPECT_THAT(
      ErrorOfMessages(std::string(kHello) + R"(,"thinking":{"type":"enabled","budget_tokens":9}})"),
      HasSubstr("thinking.budget_tokens: "));
}

TEST(AnthropicMessages, AnAnswerThatIsBegunIsGoneOnWith) {
  EXPECT_FALSE(ReadMessages(std::string(kHello) + "}").ask.chat.goes_on);
  EXPECT_TRUE(ReadMessages(R"({"max_tokens":5,"messages":[{"role":"user","content":"a"},
                               {"role":"assistant","content":"It is"}]})")
                  .ask.chat.goes_on);
}

constexpr const char* kThinksAndCalls =
    R"(<think>Hm.</think>I look.<tool_call>{"name": "find", "arguments": {"a": 1}}</tool_call>)";

AnswerReading ReadingOfBlocks() {
  AnswerReading reading;
  reading.style = {
      .reasoning_open = "<think>", .reasoning_close = "</think>", .calls = GeneralCallMarks()};
  reading.options = {.reads_reasoning = true, .reads_calls = true};
  return reading;
}

TEST(AnthropicMessages, ThoughtsTextAndCallsAreBlocks) {
  const auto format = MakeMessagesFormat(ReadMessages(std::string(kHello) + "}"), {.id = "msg_7"},
                                         ReadingOfBlocks());
  ChoiceAnswer choice = Ended(FinishReason::kEndToken);
  choice.answer.text = kThinksAndCalls;
  const std::string body = format->Whole({&choice, 1}).body;
  EXPECT_THAT(body, HasSubstr(R"("content":[{"type":"thinking","thinking":"Hm.","signature":""},)"
                              R"({"type":"text","text":"I look."},{"type":"tool_use",)"
                              R"("id":"call_7_0_0","name":"find","input":{"a":1}}])"));
  EXPECT_THAT(body, HasSubstr(R"("stop_reason":"tool_use")"));
}

TEST(AnthropicMessages, AStreamOpensAndClosesEachBlock) {
  const auto format = MakeMessagesFormat(ReadMessages(std::string(kHello) + "}"), {.id = "msg_7"},
                                         ReadingOfBlocks());
  const ChoiceAnswer choice = Ended(FinishReason::kEndToken);
  std::string stream = format->Delta(0, {.text = kThinksAndCalls, .tokens = {}});
  stream += format->Close(0, choice.answer);
  stream += format->Last({&choice, 1});
  std::size_t at = 0;
  for (
      const char* next :
      {R"("index":0,"content_block":{"type":"thinking")",
       R"("index":0,"delta":{"type":"thinking_delta","thinking":"Hm."})",
       R"("content_block_stop","index":0)", R"("index":1,"content_block":{"type":"text")",
       R"("content_block_stop","index":1)",
       R"("index":2,"content_block":{"type":"tool_use","id":"call_7_0_0","name":"find","input":{}})",
       R"("index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\": 1}"})",
       R"("content_block_stop","index":2)", R"("stop_reason":"tool_use")"}) {
    const std::size_t found = stream.find(next, at);
    ASSERT_NE(found, stream.npos) << next << "\n" << stream;
    at = found;
  }
}

}  // namespace
}  // namespace troupe
