#include "server/llama_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LlamaCall ReadLlama(std::string_view body, LlamaKind kind = LlamaKind::kText) {
  return ReadLlamaCall(body, kind, {.max_tokens = 77}).value();
}

ChoiceAnswer LlamaAnswer(FinishReason finish) {
  ChoiceAnswer choice;
  choice.answer = {.text = "a\nb", .tokens = {1, 2}, .finish = finish, .stopped_by = "END"};
  choice.answer.usage.prompt_tokens = 3;
  choice.answer.usage.generated_tokens = 2;
  choice.tokens = {{.text = "a", .logprob = -1, .top = {{.text = "b", .logprob = -2}}}};
  return choice;
}

TEST(LlamaCompletion, FieldsAreThoseOfLlamaServer) {
  const LlamaCall call = ReadLlama(
      R"({"prompt":"Hi","n_predict":5,"stream":true,"stop":["x"],"n_probs":2,"cache_prompt":true,
          "id_slot":-1,"return_tokens":true,"temperature":0})");
  EXPECT_EQ(std::get<std::string>(call.prompts.at(0)), "Hi");
  EXPECT_FALSE(call.is_list);
  EXPECT_EQ(call.request.max_tokens, 5u);
  EXPECT_THAT(call.request.stop, ElementsAre("x"));
  EXPECT_EQ(call.call.logprobs, 2u);
  EXPECT_TRUE(call.call.stream && call.tells_tokens);
  EXPECT_EQ(ReadLlama(R"({"prompt":[1,2]})").request.max_tokens, 77u);
  EXPECT_TRUE(ReadLlama(R"({"prompt":["a"]})").is_list);
  EXPECT_THAT(ReadLlamaCall(R"({"n_predict":1})", LlamaKind::kText, {}).status().message(),
              HasSubstr("no 'prompt'"));
}

TEST(LlamaCompletion, AGapHasWhatTheEditorKnowsBeforeIt) {
  const LlamaCall call = ReadLlama(
      R"({"input_prefix":"int f() {\n","input_suffix":"}","prompt":"  ret",
          "input_extra":[{"filename":"a.h","text":"int g();"}]})",
      LlamaKind::kGap);
  EXPECT_EQ(std::get<Gap>(call.prompts.at(0)),
            (Gap{.before = "--- a.h ---\nint g();\nint f() {\n  ret", .after = "}"}));
  EXPECT_THAT(ReadLlamaCall(R"({"input_prefix":"a"})", LlamaKind::kGap, {}).status().message(),
              HasSubstr("input_suffix"));
}

TEST(LlamaCompletion, AWholeAnswerSaysWhyItEnded) {
  const auto format = MakeLlamaFormat(
      ReadLlama(R"({"prompt":"Hi","n_probs":1,"return_tokens":true})"), {.model = "m", .seed = 7});
  const std::vector<ChoiceAnswer> answers = {LlamaAnswer(FinishReason::kStopString)};
  const Json body = Json::Parse(format->Whole(answers).body).value();
  EXPECT_EQ(body.Find("content")->AsString(), "a\nb");
  EXPECT_EQ(body.Find("tokens")->Dump(), "[1,2]");
  EXPECT_EQ(body.Find("stop_type")->AsString(), "word");
  EXPECT_EQ(body.Find("stopping_word")->AsString(), "END");
  EXPECT_EQ(body.Find("tokens_predicted")->AsCount(), 2u);
  EXPECT_EQ(body.Find("tokens_evaluated")->AsCount(), 3u);
  EXPECT_EQ(*body.Find("has_new_line"), Json(true));
  EXPECT_EQ(body.Find("completion_probabilities")->Dump(),
            R"([{"token":"a","logprob":-1.0,"top_logprobs":[{"token":"b","logprob":-2.0}]}])");
  EXPECT_NE(body.Find("timings"), nullptr);
  const auto list = MakeLlamaFormat(ReadLlama(R"({"prompt":["a","b"]})"), {.model = "m"});
  EXPECT_EQ(Json::Parse(list->Whole(std::vector(2, answers[0])).body)->size(), 2u);
}

TEST(LlamaCompletion, AStreamEndsWithTheEventThatSaysStop) {
  const auto format = MakeLlamaFormat(ReadLlama(R"({"prompt":"Hi"})"), {.model = "m"});
  EXPECT_EQ(format->Open(), "");
  EXPECT_EQ(format->Delta(0, {.text = "a", .tokens = {}}),
            "data: {\"index\":0,\"content\":\"a\",\"tokens\":[],\"stop\":false}\n\n");
  const std::string last = format->Close(0, LlamaAnswer(FinishReason::kEndToken).answer);
  EXPECT_THAT(last, HasSubstr(R"("content":"","tokens":[],"stop":true,)"));
  EXPECT_THAT(last, HasSubstr(R"("stop_type":"eos")"));
  EXPECT_EQ(format->Last({}), "");
}

TEST(LlamaCompletion, FieldsWithoutWhichTheAnswerWouldBeWrongAreRefused) {
  const auto error = [](const std::string& field) {
    return ReadLlamaCall(R"({"prompt":"a",)" + field + "}", LlamaKind::kText, Request())
        .status()
        .message();
  };
  EXPECT_THAT(error(R"("t_max_predict_ms":100)"), testing::StartsWith("request: t_max_predict_ms"));
  EXPECT_THAT(error(R"("post_sampling_probs":true)"),
              testing::StartsWith("request: post_sampling_probs: "));
  EXPECT_THAT(error(R"("response_fields":["content"])"),
              testing::StartsWith("request: response_fields: "));
  EXPECT_EQ(error(R"("t_max_predict_ms":0,"post_sampling_probs":false,"response_fields":[])"), "");
}

}  // namespace
}  // namespace troupe
