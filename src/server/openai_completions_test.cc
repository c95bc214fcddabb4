#include "server/openai_completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "server/prompt_fields.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CompletionCall ReadCall(std::string_view body) { return ReadCompletionCall(body, {}).value(); }

std::string ErrorOfCall(std::string_view body) {
  const Result<CompletionCall> call = ReadCompletionCall(body, {});
  EXPECT_FALSE(call.ok()) << body;
  return call.ok() ? "" : call.status().message();
}

TEST(OpenAiCompletions, APromptIsATextTokensOrSeveralOfThem) {
  EXPECT_THAT(ReadCall(R"({"prompt":"a"})").prompts, ElementsAre(Prompt(std::string("a"))));
  EXPECT_THAT(ReadCall(R"({"prompt":["a","b"]})").prompts,
              ElementsAre(Prompt(std::string("a")), Prompt(std::string("b"))));
  EXPECT_THAT(ReadCall(R"({"prompt":[1,2]})").prompts,
              ElementsAre(Prompt(std::vector<TokenId>{1, 2})));
  EXPECT_THAT(ReadCall(R"({"prompt":[[1],[2,3]]})").prompts,
              ElementsAre(Prompt(std::vector<TokenId>{1}), Prompt(std::vector<TokenId>{2, 3})));
}

TEST(OpenAiCompletions, ASuffixIsWhatStandsAfterTheGap) {
  EXPECT_THAT(ReadCall(R"({"prompt":["a","b"],"suffix":"c"})").prompts,
              ElementsAre(Prompt(Gap{.before = "a", .after = "c"}),
                          Prompt(Gap{.before = "b", .after = "c"})));
  EXPECT_THAT(ReadCall(R"({"prompt":"a","suffix":""})").prompts,
              ElementsAre(Prompt(std::string("a"))));
}

TEST(OpenAiCompletions, TextThatBecomesTokensIsLimitedASuffixAsOftenAsItStandsThere) {
  const std::string half(kMostPromptBytes / 2, 'a'), more = half + "a";
  EXPECT_EQ(ReadCall(R"({"prompt":")" + half + R"(","suffix":")" + half + R"("})").prompts.size(),
            1u);
  EXPECT_THAT(ErrorOfCall(R"({"prompt":[")" + half + R"(",")" + more + R"("]})"),
              HasSubstr("request: prompt: 8388609 bytes of text"));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":["a","b"],"suffix":")" + more + R"("})"),
              HasSubstr("request: suffix: 8388610 bytes of text"));
}

TEST(OpenAiCompletions, AnAnswerIsShortUnlessItIsSaidHowLong) {
  EXPECT_EQ(ReadCall(R"({"prompt":"a"})").request.max_tokens, 16u);
  EXPECT_EQ(ReadCall(R"({"prompt":"a","max_tokens":3})").request.max_tokens, 3u);
  EXPECT_EQ(ReadCompletionCall(R"({"prompt":"a","max_tokens":-1})", {.max_tokens = 77})
                ->request.max_tokens,
            77u);
}

TEST(OpenAiCompletions, WhatIsWrongIsNamedByItsField) {
  EXPECT_THAT(ErrorOfCall("{}"), HasSubstr("no 'prompt'"));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":[]})"), HasSubstr("prompt: "));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":[1,"a"]})"), HasSubstr("prompt[1]: "));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":[-1]})"), HasSubstr("prompt[0]: "));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":"a","logprobs":21})"), HasSubstr("logprobs: "));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":[1],"suffix":"b"})"), HasSubstr("suffix: "));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":"a","best_of":3})"), HasSubstr("best_of: "));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":"a","suffix":"b","echo":true})"), HasSubstr("echo: "));
  EXPECT_THAT(ErrorOfCall(R"({"prompt":"a","echo":true,"logprobs":1,"stream":true})"),
              HasSubstr("echo: "));
}

TEST(OpenAiCompletions, AnEchoComesOnceBeforeTheAnswer) {
  CompletionCall call = ReadCall(R"({"prompt":"The ","echo":true,"stream":true})");
  EXPECT_TRUE(call.echo);
  call.echoes = {{.text = "The ", .first_token = "T"}};
  const auto format = MakeCompletionFormat(call, {});
  EXPECT_THAT(format->Open(), HasSubstr(R"("text":"The ")"));
  EXPECT_THAT(format->Delta(0, {.text = "a", .tokens = {}}), HasSubstr(R"("text":"a")"));
  EXPECT_THAT(format->Delta(0, {.text = "b", .tokens = {}}), HasSubstr(R"("text":"b")"));
  ChoiceAnswer choice;
  choice.answer.text = "ab";
  EXPECT_THAT(MakeCompletionFormat(call, {})->Whole({&choice, 1}).body,
              HasSubstr(R"("text":"The ab")"));
}

TEST(OpenAiCompletions, TokensOfAnEchoAreToldBeforeThoseOfTheAnswer) {
  CompletionCall call = ReadCall(R"({"prompt":"abc","echo":true,"logprobs":1})");
  call.echoes = {{.text = "abc", .first_token = "ab"}};
  ChoiceAnswer choice;
  choice.answer.text = "d";
  choice.prompt = {{.text = "c", .logprob = -1, .top = {{.text = "x", .logprob = -0.5}}}};
  choice.tokens = {{.text = "d", .logprob = -2, .top = {}}};
  const std::string body = MakeCompletionFormat(call, {})->Whole({&choice, 1}).body;
  EXPECT_THAT(body, HasSubstr(R"("text":"abcd")"));
  EXPECT_THAT(body,
              HasSubstr(R"("logprobs":{"tokens":["ab","c","d"],"token_logprobs":[null,-1.0,-2.0],)"
                        R"("top_logprobs":[null,{"x":-0.5},{}],"text_offset":[0,2,3]})"));
}

TEST(OpenAiCompletions, APromptWithoutItsSpecialTokensIsToBeSentAsTokens) {
  EXPECT_THAT(ReadCompletionCall(R"({"prompt":"a","add_special_tokens":false})", Request())
                  .status()
                  .message(),
              testing::StartsWith("request: add_special_tokens: "));
  EXPECT_TRUE(ReadCompletionCall(R"({"prompt":"a","add_special_tokens":true})", Request()).ok());
}

TEST(OpenAiCompletions, TokensThatAreNoTextByThemselvesAreToldByTheirBytes) {
  const auto format = MakeCompletionFormat(ReadCall(R"({"prompt":"a","logprobs":2})"), {});
  ChoiceAnswer choice;
  choice.tokens = {{.text = "\xE4\xBD",
                    .logprob = -1,
                    .top = {{.text = "\xE4\xBD", .logprob = -1}, {.text = "\xA0", .logprob = -2}}}};
  EXPECT_THAT(format->Whole({&choice, 1}).body,
              HasSubstr(R"("tokens":["bytes:\\xe4\\xbd"],"token_logprobs":[-1.0],)"
                        R"("top_logprobs":[{"bytes:\\xe4\\xbd":-1.0,"bytes:\\xa0":-2.0}])"));
}

TEST(OpenAiCompletions, OffsetsOfTokensCountTheCharactersBeforeThem) {
  const auto format = MakeCompletionFormat(ReadCall(R"({"prompt":"a","logprobs":0})"), {});
  ChoiceAnswer choice;
  choice.answer.text = "abc";
  choice.tokens = {{.text = "ab", .logprob = -1, .top = {}},
                   {.text = "c", .logprob = -2, .top = {}}};
  EXPECT_THAT(format->Whole({&choice, 1}).body,
              HasSubstr(R"("logprobs":{"tokens":["ab","c"],"token_logprobs":[-1.0,-2.0],)"
                        R"("top_logprobs":[{},{}],"text_offset":[0,2]})"));
  // One character of two bytes, one of three that is cut in its midst, and a letter.
  choice.tokens = {{.text = "\u00e9", .logprob = -1, .top = {}},
                   {.text = "\u4e2d\xE4\xB8", .logprob = -1, .top = {}},
                   {.text = "\xAD", .logprob = -1, .top = {}},
                   {.text = "b", .logprob = -1, .top = {}}};
  EXPECT_THAT(format->Whole({&choice, 1}).body, HasSubstr(R"("text_offset":[0,1,3,3]})"));
}

}  // namespace
}  // namespace troupe
