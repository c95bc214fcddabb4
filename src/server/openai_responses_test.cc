#include "server/openai_responses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ResponsesCall ReadResponses(std::string_view body) {
  return ReadResponsesCall(body, {.max_tokens = 77}).value();
}

std::string ErrorOfResponses(std::string_view fields) {
  const auto call = ReadResponsesCall(fmt::format(R"({{"input":"Hi",{}}})", fields), {});
  EXPECT_FALSE(call.ok()) << fields;
  return call.ok() ? "" : call.status().message();
}

TEST(OpenAiResponses, ATextIsAMessageOfTheUsersAfterTheInstructions) {
  const ResponsesCall call = ReadResponses(R"({"input":"Hi","instructions":"Be brief."})");
  EXPECT_THAT(call.ask.chat.messages,
              ElementsAre(Message{"system", "Be brief."}, Message{"user", "Hi"}));
  EXPECT_EQ(call.request.max_tokens, 77u);
}

// The fields that Codex sends, and how it sends a talk back.
constexpr const char* kCodex = R"({"model":"m","instructions":"You are an agent.","input":[
    {"type":"message","role":"developer","content":[{"type":"input_text","text":"Ask first."}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"List the files."}]},
    {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}],
     "encrypted_content":null},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
    {"type":"function_call","call_id":"c1","name":"shell","arguments":"{\"command\":\"ls\"}"},
    {"type":"function_call_output","call_id":"c1","output":"a.txt"}],
  "tools":[{"type":"function","name":"shell","description":"runs","strict":false,"parameters":
    {"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}},
    {"type":"web_search"},{"type":"custom","name":"apply_patch"},{"type":"namespace"}],
  "tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"effort":"high","summary":"auto"},
  "store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k",
  "client_metadata":{"a":"b"},"text":{"verbosity":"medium"}})";

// What else its talks hold: calls in no format, and what OpenAI's own tools did.
constexpr const char* kCodexGoesOn = R"({"input":[
    {"type":"message","role":"user","content":[{"type":"input_text","text":"See "},
      {"type":"input_image","image_url":"data:image/png;base64,AA=="}]},
    {"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}},
    {"type":"custom_tool_call","status":"completed","call_id":"c1","name":"apply_patch","input":"*** a"},
    {"type":"custom_tool_call_output","call_id":"c1","output":"done"},
    {"type":"local_shell_call","call_id":"c2","status":"completed",
     "action":{"type":"exec","command":["ls"]}},
    {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"a.png "},
      {"type":"input_image","image_url":"data:image/png;base64,AA=="}]},
    {"type":"compaction","encrypted_content":"x"},{"type":"ghost_snapshot"}]})";

TEST(OpenAiResponses, WhatOtherToolsDidIsATalkToo) {
  const ResponsesCall call = ReadResponses(kCodexGoesOn);
  EXPECT_THAT(
      call.ask.chat.messages,
      ElementsAre(
          Message{"user", "See [an image, which this model cannot see]"},
          Message{"assistant", "",
                  R"({"tool_calls":[{"id":"c1","type":"function","function":{"name":"apply_patch",)"
                  R"("arguments":"{\"input\":\"*** a\"}"}}]})"},
          Message{"tool", "done", R"({"tool_call_id":"c1"})"},
          Message{"assistant", "",
                  R"({"tool_calls":[{"id":"c2","type":"function","function":{"name":"local_shell",)"
                  R"("arguments":"{\"type\":\"exec\",\"command\":[\"ls\"]}"}}]})"},
          Message{"tool", "a.png [an image, which this model cannot see]",
                  R"({"tool_call_id":"c2"})"}));
}

TEST(OpenAiResponses, ATalkAsCodexSendsItIsAChat) {
  const ResponsesCall call = ReadResponses(kCodex);
  EXPECT_THAT(
      call.ask.chat.messages,
      ElementsAre(
          Message{"system", "You are an agent.\n\nAsk first."}, Message{"user", "List the files."},
          Message{"assistant", "I look.",
                  R"({"reasoning_content":"Hm.","tool_calls":[{"id":"c1","type":"function",)"
                  R"("function":{"name":"shell","arguments":"{\"command\":\"ls\"}"}}]})"},
          Message{"tool", "a.txt", R"({"tool_call_id":"c1"})"}));
  ASSERT_EQ(call.ask.tools.size(), 1u);
  EXPECT_EQ(call.ask.tools[0].Find("function")->Find("name")->AsString(), "shell");
  EXPECT_EQ(call.ask.options.Dump(), R"({"reasoning_effort":"high"})");
  EXPECT_TRUE(call.stream);
}

TEST(OpenAiResponses, WhatWouldHaveToBeKeptOrIsNotKnownIsRefusedByItsField) {
  for (const auto& [fields, place] :
       {std::pair{R"("previous_response_id":"resp_1")", "previous_response_id: "},
        {R"("conversation":"c")", "conversation: "},
        {R"("background":true)", "background: "},
        {R"("prompt":{"id":"p"})", "prompt: "},
        {R"("top_logprobs":2)", "top_logprobs: "},
        {R"("include":["message.output_text.logprobs"])", "include[0]: "},
        {R"("truncation":"auto")", "truncation: "},
        {R"("metadata":["a"])", "metadata: "},
        {R"("metadata":{"a":1})", "metadata.a: "},
        {R"("tools":[{}])", "tools[0]: no 'type'"},
        {R"("tool_choice":{"type":"web_search"})", "tool_choice.type: "},
        {R"("max_output_tokens":0)", "max_output_tokens: "},
        {R"("text":{"format":{"type":"xml"}})", "text.format.type: "},
        {R"("reasoning":{"effort":"huge"})", "reasoning.effort: "}}) {
    EXPECT_THAT(ErrorOfResponses(fields), HasSubstr(place)) << fields;
  }
  const auto item = ReadResponsesCall(R"({"input":[{"type":"item_reference","id":"x"}]})", {});
  EXPECT_THAT(item.status().message(), HasSubstr("input: "));
  EXPECT_FALSE(ReadResponsesCall("{}", {}).ok());
}

TEST(OpenAiResponses, MetadataIsShort) {
  const auto with = [](std::size_t pairs, std::size_t key, std::size_t value) {
    std::string text = R"("metadata":{)";
    for (std::size_t i = 0; i < pairs; ++i) {
      const std::string name = fmt::format("{:0>{}}", i, key), said(value, 'v');
      text += fmt::format(R"({}"{}":"{}")", i > 0 ? "," : "", name, said);
    }
    return text + "}";
  };
  ReadResponses(fmt::format(R"({{"input":"Hi",{}}})", with(16, 64, 512)));
  for (const std::string& more : {with(17, 2, 1), with(1, 65, 1), with(1, 1, 513)}) {
    EXPECT_THAT(ErrorOfResponses(more), HasSubstr("metadata")) << more;
  }
}

TEST(OpenAiResponses, RepeatsWhatItWasAskedForInEveryEventOfTheResponse) {
  const ResponsesCall call =
      ReadResponses(R"({"input":"Hi","user":"me \"x\"","temperature":0.5,"metadata":{"a":"b"}})");
  const auto format = MakeResponsesFormat(call, {.id = "resp_7"});
  for (const std::string& event : {format->Open(), format->Progress(1, 2), format->Waiting(),
                                   format->Failure(Error(Code::kInternal, "it broke"))}) {
    EXPECT_THAT(event, HasSubstr(R"("metadata":{"a":"b"})"));
    EXPECT_THAT(event, HasSubstr(R"("temperature":0.5,"top_p":null)"));
    EXPECT_THAT(event, HasSubstr(R"("user":"me \"x\"")"));
  }
  const ChoiceAnswer choice = {.answer = {.text = "Yes."}};
  const auto whole = Json::Parse(format->Whole({&choice, 1}).body);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->Find("user")->AsString(), R"(me "x")");
  EXPECT_EQ(whole->Find("truncation")->AsString(), "disabled");
}

TEST(OpenAiResponses, ToolsAndItemsOfAnyOtherKindArePassedOverAndNoted) {
  const ResponsesCall call = ReadResponses(R"({"input":[
      {"type":"item_reference","id":"msg_1"},{"type":"hologram","data":[1]},
      {"role":"user","content":[{"type":"input_text","text":"Hi "},{"type":"input_smell"}]}],
    "tools":[{"type":"computer"},{"type":"tool_search"},{"type":"web_search_2025_08_26"},
      {"type":"function","name":"a"},{"type":"function","name":"b"}],
    "tool_choice":{"type":"allowed_tools","mode":"required","tools":[
      {"type":"function","name":"b"},{"type":"computer"}]}})");
  EXPECT_THAT(call.ask.chat.messages,
              ElementsAre(Message{"user", "Hi [input_smell, which this model cannot read]"}));
  ASSERT_EQ(call.ask.tools.size(), 1u);
  EXPECT_EQ(call.ask.tools[0].Find("function")->Find("name")->AsString(), "b");
  EXPECT_EQ(call.ask.choice, ToolChoice::kRequired);
  EXPECT_THAT(call.ask.passed_over,
              ElementsAre("an item of type 'item_reference'", "an item of type 'hologram'",
                          "a tool of type 'computer'", "a tool of type 'tool_search'",
                          "a tool of type 'web_search_2025_08_26'"));
}

TEST(OpenAiResponses, AnAnswerMayHaveToFollowASchema) {
  const ResponsesCall call = ReadResponses(
      R"({"input":"Hi","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"integer"}}}})");
  EXPECT_EQ(call.request.rule,
            (AnswerRule{AnswerRule::Kind::kJsonSchema, R"({"type":"integer"})"}));
}

AnswerReading ReadingOfItems() {
  AnswerReading reading;
  reading.style = {
      .reasoning_open = "<think>", .reasoning_close = "</think>", .calls = GeneralCallMarks()};
  reading.options = {.reads_reasoning = true, .reads_calls = true};
  return reading;
}

ChoiceAnswer AnswerWithCall(FinishReason finish = FinishReason::kEndToken) {
  ChoiceAnswer choice;
  choice.answer.text =
      R"(<think>Hm.</think>I look.<tool_call>{"name": "find", "arguments": {"a": 1}}</tool_call>)";
  choice.answer.finish = finish;
  choice.answer.usage.prompt_tokens = 5;
  choice.answer.usage.generated_tokens = 7;
  return choice;
}

const OpenAiHead kHead = {.id = "resp_7", .model = "m", .created = 9};

TEST(OpenAiResponses, AWholeAnswerIsItsItems) {
  const auto format =
      MakeResponsesFormat(ReadResponses(R"({"input":"Hi","store":true})"), kHead, ReadingOfItems());
  const ChoiceAnswer choice = AnswerWithCall();
  const Json body = Json::Parse(format->Whole({&choice, 1}).body).value();
  EXPECT_EQ(body.Find("object")->AsString(), "response");
  EXPECT_EQ(body.Find("status")->AsString(), "completed");
  EXPECT_EQ(*body.Find("store"), Json(false));
  const Json& output = *body.Find("output");
  ASSERT_EQ(output.size(), 3u);
  EXPECT_EQ(output[0].Find("type")->AsString(), "reasoning");
  EXPECT_EQ((*output[1].Find("content"))[0].Find("text")->AsString(), "I look.");
  EXPECT_EQ(output[2].Find("arguments")->AsString(), R"({"a": 1})");
  EXPECT_EQ(output[2].Find("call_id")->AsString(), "call_7_0_2");
  EXPECT_EQ(body.Find("usage")->Find("total_tokens")->AsCount(), 12u);
  const ChoiceAnswer cut = AnswerWithCall(FinishReason::kLength);
  EXPECT_THAT(MakeResponsesFormat(ReadResponses(R"({"input":"Hi"})"), kHead)->Whole({&cut, 1}).body,
              HasSubstr(R"("incomplete_details":{"reason":"max_output_tokens"})"));
}

std::vector<Json> EventsIn(std::string_view stream) {
  std::vector<Json> events;
  while (!stream.empty()) {
    const std::string_view event = stream.substr(0, stream.find("\n\n"));
    stream.remove_prefix(event.size() + 2);
    events.push_back(Json::Parse(event.substr(event.find("data: ") + 6)).value());
  }
  return events;
}

TEST(OpenAiResponses, AStreamTellsEachItemFromItsBeginningToItsEnd) {
  const auto format =
      MakeResponsesFormat(ReadResponses(R"({"input":"Hi"})"), kHead, ReadingOfItems());
  const ChoiceAnswer choice = AnswerWithCall();
  std::string stream = format->Open();
  for (const char c : choice.answer.text) {
    stream += format->Delta(0, {.text = {&c, 1}, .tokens = {}});
  }
  stream += format->Close(0, choice.answer);
  stream += format->Last({&choice, 1});
  const std::vector<Json> events = EventsIn(stream);
  std::vector<std::string> kinds;
  std::string arguments;
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].Find("sequence_number")->AsCount(), i);
    std::string kind = events[i].Find("type")->AsString().substr(9);  // without "response."
    if (kind == "function_call_arguments.delta") {
      arguments += events[i].Find("delta")->AsString();
    }
    if (kinds.empty() || kinds.back() != kind) kinds.push_back(std::move(kind));
  }
  EXPECT_THAT(kinds,
              ElementsAre("created", "in_progress", "output_item.added", "content_part.added",
                          "reasoning_text.delta", "reasoning_text.done", "content_part.done",
                          "output_item.done", "output_item.added", "content_part.added",
                          "output_text.delta", "output_text.done", "content_part.done",
                          "output_item.done", "output_item.added", "function_call_arguments.delta",
                          "function_call_arguments.done", "output_item.done", "completed"));
  EXPECT_EQ(arguments, R"({"a": 1})");
  const auto whole =
      MakeResponsesFormat(ReadResponses(R"({"input":"Hi"})"), kHead, ReadingOfItems())
          ->Whole({&choice, 1});
  EXPECT_EQ(*events.back().Find("response"), Json::Parse(whole.body).value());
}

TEST(OpenAiResponses, AFailureAmidAStreamSaysWhetherToTryAgain) {
  const auto format = MakeResponsesFormat(ReadResponses(R"({"input":"Hi"})"), kHead);
  format->Open();
  for (const auto& [status, error] :
       {std::pair{Status(Code::kDataLoss, "disk"), R"({"code":"server_error","message":"disk"})"},
        {Status(Code::kInvalidArgument, "a"), R"({"code":"invalid_prompt","message":"a"})"},
        {ContextFull("longer than the context"),
         R"({"code":"context_length_exceeded","message":"longer than the context"})"},
        {Status(Code::kDeadlineExceeded, "late"),
         R"({"code":"server_is_overloaded","message":"late"})"},
        {Status(Code::kUnavailable, "full").WithRetryAfter(2.5),
         R"({"code":"rate_limit_exceeded","message":"full; try again in 3s"})"}}) {
    const std::string event = format->Failure(status);
    EXPECT_THAT(event, HasSubstr("event: response.failed"));
    EXPECT_THAT(event, HasSubstr(fmt::format(R"("error":{})", error)));
  }
}

TEST(OpenAiResponses, AStreamIsToldInItselfThatTheContextIsFull) {
  const Status full = ContextFull("9 tokens, more than the context of 8");
  const auto whole = MakeResponsesFormat(ReadResponses(R"({"input":"Hi"})"), kHead);
  EXPECT_EQ(whole->Refusal(full).status, 400);
  const auto stream = MakeResponsesFormat(ReadResponses(R"({"input":"Hi","stream":true})"), kHead);
  EXPECT_EQ(stream->Refusal(Status(Code::kInvalidArgument, "a")).status, 400);
  const HttpResponse refusal = stream->Refusal(full);
  EXPECT_EQ(refusal.status, 200);
  EXPECT_EQ(refusal.content_type, "text/event-stream");
  const Json last = EventsIn(refusal.body).back();
  EXPECT_EQ(last.Find("type")->AsString(), "response.failed");
  EXPECT_EQ(last.Find("response")->Find("error")->Find("code")->AsString(),
            "context_length_exceeded");
}

TEST(OpenAiResponses, AStreamThatFillsTheContextFailsWithWhatItWrote) {
  const auto format = MakeResponsesFormat(ReadResponses(R"({"input":"Hi","stream":true})"), kHead,
                                          ReadingOfItems());
  const ChoiceAnswer choice = AnswerWithCall(FinishReason::kContextFull);
  std::string stream = format->Open();
  stream += format->Delta(0, {.text = choice.answer.text, .tokens = {}});
  stream += format->Close(0, choice.answer);
  const Json last = EventsIn(format->Last({&choice, 1})).front();
  EXPECT_EQ(last.Find("type")->AsString(), "response.failed");
  const Json& response = *last.Find("response");
  EXPECT_EQ(response.Find("status")->AsString(), "failed");
  EXPECT_EQ(response.Find("error")->Find("code")->AsString(), "context_length_exceeded");
  EXPECT_EQ(response.Find("output")->size(), 3u);
  EXPECT_EQ(response.Find("usage")->Find("output_tokens")->AsCount(), 7u);
}

TEST(OpenAiResponses, AStreamThatHasBegunIsNotCreatedAgainAndGoesOnWithItsNumbers) {
  const ResponsesCall call = ReadResponses(R"({"input":"Hi","stream":true})");
  const std::vector<Json> goes_on =
      EventsIn(MakeResponsesFormat(call, kHead, {}, /*told=*/5)->Open());
  ASSERT_EQ(goes_on.size(), 1u);
  EXPECT_EQ(goes_on[0].Find("type")->AsString(), "response.in_progress");
  EXPECT_EQ(goes_on[0].Find("sequence_number")->AsCount(), 5u);
  const HttpResponse refusal =
      MakeResponsesFormat(call, kHead, {}, 5)->Refusal(Status(Code::kInvalidArgument, "a"));
  EXPECT_EQ(refusal.status, 200);
  const std::vector<Json> fails = EventsIn(refusal.body);
  ASSERT_EQ(fails.size(), 1u);
  EXPECT_EQ(fails[0].Find("type")->AsString(), "response.failed");
  EXPECT_EQ(fails[0].Find("sequence_number")->AsCount(), 5u);
}

TEST(OpenAiResponses, AStreamThatWaitsSaysSoByEventsOfItsOrder) {
  const auto format = MakeResponsesFormat(ReadResponses(R"({"input":"Hi"})"), kHead);
  std::string stream = format->Open();
  stream += format->Waiting();
  stream += format->Progress(3, 8);
  const std::vector<Json> events = EventsIn(stream);
  ASSERT_EQ(events.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(events[i].Find("type")->AsString(), "response.in_progress");
    EXPECT_EQ(events[i].Find("sequence_number")->AsCount(), i);
    EXPECT_EQ(events[i].Find("response")->Find("id")->AsString(), "resp_7");
  }
  EXPECT_EQ(events[3].Find("prompt_progress")->Dump(), R"({"processed":3,"total":8})");
}

}  // namespace
}  // namespace troupe
