#include "server/anthropic_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

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
  EXPECT_THAT(std::get<std::vector<Message>>(call.request.prompt),
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
  EXPECT_EQ(std::get<std::vector<Message>>(call.request.prompt)[0].content, "Be brief.");
}

TEST(AnthropicMessages, WhatIsWrongIsNamedByItsField) {
  EXPECT_THAT(ErrorOfMessages("{}"), HasSubstr("no 'messages'"));
  EXPECT_THAT(ErrorOfMessages(R"({"messages":[{"role":"user","content":"a"}]})"),
              HasSubstr("no 'max_tokens'"));
  EXPECT_THAT(ErrorOfMessages(R"({"max_tokens":1,"messages":[{"role":"system","content":"a"}]})"),
              HasSubstr("messages[0].role: "));
  EXPECT_THAT(ErrorOfMessages(
                  R"({"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image"}]}]})"),
              HasSubstr("messages[0].content[0].type: "));
  EXPECT_THAT(ErrorOfMessages(std::string(kHello) + R"(,"stop_sequences":[""]})"),
              HasSubstr("stop_sequences: "));
  EXPECT_THAT(ErrorOfMessages(std::string(kHello) + R"(,"tools":[{"name":"a"}]})"),
              HasSubstr("tools: "));
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
  const ChoiceAnswer choice = Ended(FinishReason::kLength);
  const std::string stream = format->Open() + format->Delta(0, {.text = "Hi", .tokens = {}}) +
                             format->Close(0, choice.answer) + format->Last({&choice, 1});
  EXPECT_EQ(
      stream,
      "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","
      "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":"
      "null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":7,\"output_tokens\":0}}}\n\n"
      "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
      "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
      "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
      "\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n"
      "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
      "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
      "\"max_tokens\",\"stop_sequence\":null},\"usage\":{\"input_tokens\":7,\"output_tokens\":2}}"
      "\n\n"
      "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
  EXPECT_EQ(format->Progress(1, 2), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
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

}  // namespace
}  // namespace troupe
