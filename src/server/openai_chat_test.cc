#include "server/openai_chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ChatCall ReadChat(std::string_view body) { return ReadChatCall(body, {.max_tokens = 77}).value(); }

std::string ErrorOfChat(std::string_view body) {
  const Result<ChatCall> call = ReadChatCall(body, {});
  EXPECT_FALSE(call.ok()) << body;
  if (call.ok()) return "";
  EXPECT_EQ(call.status().code(), Code::kInvalidArgument);
  return call.status().message();
}

std::string With(std::string_view fields) {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"Hi"}}],{}}})", fields);
}

TEST(OpenAiChat, MessagesAreTextsOrPartsOfText) {
  const ChatCall call = ReadChat(R"({"model":"m","messages":[
      {"role":"developer","content":"Be brief."},
      {"role":"user","content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]},
      {"role":"assistant","content":null}]})");
  EXPECT_THAT(call.ask.chat.messages,
              ElementsAre(Message{"system", "Be brief."}, Message{"user", "Hello"},
                          Message{"assistant", ""}));
  EXPECT_EQ(call.request.max_tokens, 77u);
  EXPECT_FALSE(call.call.stream);
}

TEST(OpenAiChat, FieldsSayHowTokensAreChosenAndWhenAnAnswerEnds) {
  const ChatCall call = ReadChat(With(
      R"("temperature":0.5,"top_p":0.9,"top_k":7,"min_p":0.1,"seed":18446744073709551615,"n":3,
         "stop":["a","b"],"max_completion_tokens":5,"presence_penalty":-1,"frequency_penalty":2,
         "repeat_penalty":1.1,"logit_bias":{"5":3.5,"6":-100},"ignore_eos":true,"quality":"exact",
         "timeout":2.5,"stream":true,"stream_options":{"include_usage":true})"));
  const Sampling& sampling = call.request.sampling;
  EXPECT_EQ(sampling.temperature, 0.5);
  EXPECT_EQ(sampling.top_p, 0.9);
  EXPECT_EQ(sampling.top_k, 7u);
  EXPECT_EQ(sampling.min_p, 0.1);
  EXPECT_EQ(sampling.seed, 18446744073709551615u);
  EXPECT_EQ(sampling.presence_penalty, -1);
  EXPECT_EQ(sampling.frequency_penalty, 2);
  EXPECT_EQ(sampling.repetition_penalty, 1.1);
  EXPECT_EQ(sampling.logit_bias.at(5), 3.5f);
  EXPECT_TRUE(std::isinf(sampling.logit_bias.at(6)));
  EXPECT_THAT(call.request.stop, ElementsAre("a", "b"));
  EXPECT_EQ(call.request.max_tokens, 5u);
  EXPECT_TRUE(call.request.ignore_end);
  EXPECT_TRUE(call.request.exact);
  EXPECT_EQ(call.request.timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(call.call.n, 3u);
  EXPECT_TRUE(call.call.stream && call.call.include_usage);
}

TEST(OpenAiChat, AnAnswerMayHaveToBeJsonOrFollowAGrammar) {
  const auto rule = [](std::string_view fields) { return *ReadChat(With(fields)).request.rule; };
  using Kind = AnswerRule::Kind;
  EXPECT_EQ(rule(R"("response_format":{"type":"json_object"})"),
            (AnswerRule{Kind::kJsonObject, ""}));
  const AnswerRule schema = {Kind::kJsonSchema, R"({"type":"integer"})"};
  EXPECT_EQ(rule(R"("response_format":{"type":"json_schema","json_schema":)"
                 R"({"name":"a","schema":{"type":"integer"},"strict":true}})"),
            schema);
  EXPECT_EQ(rule(R"("json_schema":{"type":"integer"})"), schema);
  EXPECT_EQ(rule(R"("grammar":"root ::= \"a\"")"), (AnswerRule{Kind::kGrammar, "root ::= \"a\""}));
  EXPECT_FALSE(ReadChat(With(R"("response_format":{"type":"text"})")).request.rule);
  EXPECT_THAT(ErrorOfChat(With(R"("json_schema":{},"response_format":{"type":"json_object"})")),
              HasSubstr("response_format: "));
  EXPECT_THAT(ErrorOfChat(With(R"("response_format":{"type":"json_schema"})")),
              HasSubstr("response_format: no 'json_schema'"));
}

TEST(OpenAiChat, FieldsThatAreNullAreAsIfTheyWereNotThere) {
  const ChatCall call =
      ReadChat(With(R"("temperature":null,"stop":null,"tools":null,"n":null,)"
                    R"("max_tokens":null,"response_format":null,"logit_bias":null)"));
  EXPECT_EQ(call.request.sampling, Sampling());
  EXPECT_EQ(call.request.max_tokens, 77u);
}

TEST(OpenAiChat, MinusOneIsNoLimitAsOtherServersHaveIt) {
  const ChatCall call = ReadChat(With(R"("top_k":-1,"repeat_last_n":-1,"max_tokens":-1)"));
  EXPECT_EQ(call.request.sampling.top_k, 0u);
  EXPECT_GE(call.request.sampling.penalty_window, 1u << 20);
  EXPECT_EQ(call.request.max_tokens, 77u);
}

TEST(OpenAiChat, OptionsOfOtherServersMayBeSentUnused) {
  EXPECT_EQ(ReadChat(With(R"("typical_p":1.0,"mirostat":0,"dry_multiplier":0,"xtc_probability":0,)"
                          R"("dry_base":1.75,"samplers":"edskypmxt","min_tokens":0,"bad_words":[],)"
                          R"("allowed_token_ids":null,"skip_special_tokens":true)"))
                .request.sampling,
            Sampling());
}

TEST(OpenAiChat, WhatIsWrongIsNamedByItsField) {
  EXPECT_THAT(ErrorOfChat(""), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOfChat("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(ErrorOfChat("{}"), HasSubstr("no 'messages'"));
  EXPECT_THAT(ErrorOfChat(R"({"messages":[]})"), HasSubstr("messages: "));
  EXPECT_THAT(ErrorOfChat(R"({"messages":[{"content":"a"}]})"),
              HasSubstr("messages[0]: no 'role'"));
  EXPECT_THAT(ErrorOfChat(R"({"messages":[{"role":"king","content":"a"}]})"),
              HasSubstr("messages[0].role: \"king\""));
  EXPECT_THAT(ErrorOfChat(R"({"messages":[{"role":"user","content":7}]})"),
              HasSubstr("messages[0].content: 7"));
  EXPECT_THAT(ErrorOfChat(R"({"messages":[{"role":"user","content":[{}]}]})"),
              HasSubstr("messages[0].content[0]: no 'type'"));
  const auto stop_of = [](std::size_t bytes) { return "\"" + std::string(bytes, 'b') + "\""; };
  EXPECT_EQ(ReadChat(With(R"("stop":)" + stop_of(1024))).request.stop.size(), 1u);
  EXPECT_THAT(
      ErrorOfChat(With(R"("stop":["a",)" + stop_of(1025) + "]")),
      testing::ContainsRegex("stop.1.: .*, expected a text of at most 1024 bytes .found 1025."));
  std::string many = stop_of(1);
  for (int i = 1; i < 65; ++i) many += "," + stop_of(1);
  EXPECT_THAT(ErrorOfChat(With(R"("stop":[)" + many + "]")),
              HasSubstr("array of at most 64 texts"));
  for (const auto& [fields, place] :
       {std::pair{R"("temperature":"hot")", "temperature: "},
        {R"("top_p":1.5)", "top_p: "},
        {R"("n":0)", "n: "},
        {R"("seed":-2)", "seed: "},
        {R"("stop":"")", "stop: "},
        {R"("stop":["a",""])", "stop[1]: "},
        {R"("stop":[1])", "stop[0]: "},
        {R"("max_tokens":-5)", "max_tokens: "},
        {R"("logit_bias":{"x":1})", "logit_bias: "},
        {R"("logit_bias":{"1":101})", "logit_bias.1"},
        {R"("stream":"yes")", "stream: "},
        {R"("top_logprobs":2)", "top_logprobs: "},
        {R"("logprobs":true,"top_logprobs":21)", "top_logprobs: "},
        {R"("tools":{})", "tools: "},
        {R"("response_format":{"type":"xml"})", "response_format.type: "},
        {R"("quality":"best")", "quality: "},
        {R"("top_k":-2)", "top_k: "},
        {R"("typical_p":0.9)", "typical_p: "},
        {R"("mirostat":2)", "mirostat: "},
        {R"("dry_multiplier":-0.8)", "dry_multiplier: "},
        {R"("guided_json":{})", "guided_json: "},
        {R"("use_beam_search":true)", "use_beam_search: "},
        {R"("bad_words":["a"])", "bad_words: "},
        {R"("allowed_token_ids":[1])", "allowed_token_ids: "},
        {R"("samplers":["temperature","top_k"])", "samplers: "},
        {R"("samplers":["sorcery"])", "samplers[0]: "},
        {R"("chat_template":"x")", "chat_template: "},
        {R"("add_generation_prompt":false)", "add_generation_prompt: "},
        {R"("include_stop_str_in_output":true)", "include_stop_str_in_output: "},
        {R"("skip_special_tokens":false)", "skip_special_tokens: "},
        {R"("truncate_prompt_tokens":5)", "truncate_prompt_tokens: "},
        {R"("stop_token_ids":5)", "stop_token_ids: "},
        {R"("stop_token_ids":[-1])", "stop_token_ids[0]: "},
        {R"("n_predict":"a")", "n_predict: "},
        {R"("timeout":0)", "timeout: "}}) {
    EXPECT_THAT(ErrorOfChat(With(fields)), HasSubstr(place)) << fields;
  }
}

TEST(OpenAiChat, CallsAndResultsOfToolsStandBesideTheTexts) {
  const ChatCall call = ReadChat(R"({"messages":[
      {"role":"user","content":"Where?","name":"ann"},
      {"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"find","arguments":"{\"a\":1}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"here"}],
      "tools":[{"type":"function","function":{"name":"find"}}],"parallel_tool_calls":false,
      "tool_choice":{"type":"function","function":{"name":"find"}},"reasoning_effort":"minimal",
      "chat_template_kwargs":{"enable_thinking":false}})");
  EXPECT_THAT(
      call.ask.chat.messages,
      ElementsAre(
          Message{"user", "Where?", R"({"name":"ann"})"},
          Message{"assistant", "",
                  R"({"reasoning_content":"Hm.","tool_calls":[{"id":"c1","type":"function",)"
                  R"("function":{"name":"find","arguments":"{\"a\":1}"}}]})"},
          Message{"tool", "here", R"({"tool_call_id":"c1"})"}));
  EXPECT_EQ(call.ask.choice, ToolChoice::kRequired);
  EXPECT_EQ(call.ask.only, "find");
  EXPECT_FALSE(call.ask.parallel);
  EXPECT_EQ(call.ask.options.Dump(), R"({"enable_thinking":false,"reasoning_effort":"low"})");
}

TEST(OpenAiChat, ReasoningIsLimitedUnderEachNameThatClientsHaveForIt) {
  EXPECT_FALSE(ReadChat(With(R"("n":1)")).ask.most_reasoning);
  for (const char* name : {"thinking_budget_tokens", "thinking_token_budget", "thinking_budget"}) {
    const ChatCall call = ReadChat(With(fmt::format(R"("{}":0)", name)));
    EXPECT_EQ(call.ask.most_reasoning, 0u);
    EXPECT_EQ(call.ask.options.Dump(), R"({"thinking_budget":0})");
    EXPECT_THAT(ErrorOfChat(With(fmt::format(R"("{}":-1)", name))), HasSubstr(name));
  }
}

TEST(OpenAiChat, WhatWouldChangeAnAnswerAndIsNotDoneIsRefused) {
  for (const auto& [fields, place] :
       {std::pair{R"("functions":[{"name":"f"}])", "functions: "},
        {R"("function_call":{"name":"f"})", "function_call: "},
        {R"("tool_choice":"always")", "tool_choice: "},
        {R"("tool_choice":{"type":"custom"})", "tool_choice.type: "},
        {R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs.messages: "},
        {R"("reasoning_effort":"huge")", "reasoning_effort: "},
        {R"("continue_final_message":true)", "continue_final_message: "},
        {R"("web_search_options":{})", "web_search_options: "}}) {
    EXPECT_THAT(ErrorOfChat(With(fields)), HasSubstr(place)) << fields;
  }
  EXPECT_THAT(ErrorOfChat(R"({"messages":[{"role":"user","content":"a","tool_calls":[{}]}]})"),
              HasSubstr("messages[0].tool_calls: "));
}

TEST(OpenAiChat, WhatNoModelHereReadsIsNamedInItsPlaceAndEndsNoTalk) {
  const ChatCall call = ReadChat(R"({"messages":[
      {"role":"user","content":[{"type":"text","text":"See: "},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"smell"}]},
      {"role":"assistant","content":null,"tool_calls":[
        {"id":"c1","type":"custom","custom":{"name":"edit","input":"*** a"}},
        {"id":"c2","type":"teleport"}]},
      {"role":"tool","tool_call_id":"c1","content":[{"type":"file","file":{}}]}],
      "functions":[],"function_call":"auto","tools":[{"type":"custom","custom":{"name":"edit"}},
        {"type":"function","function":{"name":"f"}},{"type":"web\nsearch"}]})");
  const std::vector<Message>& talk = call.ask.chat.messages;
  ASSERT_EQ(talk.size(), 3u);
  EXPECT_EQ(talk[0].content,
            "See: [an image, which this model cannot see][smell, which this model cannot read]");
  EXPECT_EQ(talk[1].more,
            R"({"tool_calls":[{"id":"c1","type":"function","function":{"name":"edit",)"
            R"("arguments":"{\"input\":\"*** a\"}"}}]})");
  EXPECT_EQ(talk[2].content, "[a file, which this model cannot open]");
  ASSERT_EQ(call.ask.tools.size(), 1u);
  EXPECT_EQ(call.ask.tools[0].Find("function")->Find("name")->AsString(), "f");
  EXPECT_THAT(call.ask.passed_over,
              ElementsAre("a call of type 'teleport'", "a tool of type 'custom'",
                          "a tool of a type that is no word"));
}

TEST(OpenAiChat, ToolsMayBeAllowedByTheirNames) {
  const auto read = [](const char* mode) {
    return ReadChat(With(fmt::format(
        R"("tools":[{{"type":"function","function":{{"name":"a"}}}},
                    {{"type":"function","function":{{"name":"b"}}}}],
           "tool_choice":{{"type":"allowed_tools","allowed_tools":{{"mode":"{}",
             "tools":[{{"type":"function","function":{{"name":"b"}}}}]}}}})",
        mode)));
  };
  EXPECT_EQ(read("auto").ask.choice, ToolChoice::kAuto);
  const ChatAsk ask = read("required").ask;
  EXPECT_EQ(ask.choice, ToolChoice::kRequired);
  ASSERT_EQ(ask.tools.size(), 1u);
  EXPECT_EQ(ask.tools[0].Find("function")->Find("name")->AsString(), "b");
}

TEST(OpenAiChat, FieldsOfOtherServersMeanTheSameHere) {
  const ChatCall call = ReadChat(With(R"("n_predict":5,"stop_token_ids":[3,7],"n_probs":2)"));
  EXPECT_EQ(call.request.max_tokens, 5u);
  EXPECT_THAT(call.request.stop_tokens, ElementsAre(3, 7));
  EXPECT_EQ(call.call.logprobs, 2u);
  EXPECT_EQ(ReadChat(With(R"("n_predict":-1)")).request.max_tokens, 77u);
  const Sampling sampling =
      ReadChat(With(R"("samplers":["top_k","temperature"],"temperature":0.3)")).request.sampling;
  EXPECT_EQ(sampling.top_k, Sampling().top_k);
  EXPECT_EQ(sampling.temperature, 0.3);
  EXPECT_EQ(sampling.top_p, 1);
  EXPECT_EQ(sampling.min_p, 0);
  EXPECT_EQ(sampling.penalty_window, 0u);
  EXPECT_TRUE(ReadChatCall(R"({"messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":"b"}],"continue_final_message":true,
      "add_generation_prompt":false})",
                           {})
                  .ok());
}

TEST(OpenAiChat, ASeedOfMinusOneIsDrawn) {
  const ChatCall first = ReadChat(With(R"("seed":-1)")), second = ReadChat(With(R"("seed":-1)"));
  EXPECT_NE(first.request.sampling.seed, second.request.sampling.seed);
}

}  // namespace
}  // namespace troupe
