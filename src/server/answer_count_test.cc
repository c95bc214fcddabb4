#include "server/answer_count.h"

#include <gtest/gtest.h>

#include "server/openai_completions.h"
#include "server/service_paths.h"

namespace troupe {
namespace {

TEST(AnswerCount, AChatHasAsManyAnswersAsItAsksFor) {
  EXPECT_EQ(CountAnswers(kChat, R"({"messages":[]})", 8), 1u);
  EXPECT_EQ(CountAnswers(kChat, R"({"messages":[],"n":5})", 8), 5u);
  EXPECT_EQ(CountAnswers(kChat, R"({"messages":[],"n":null})", 8), 1u);
}

TEST(AnswerCount, CompletionsCountAsTheRequestsThatTheyBecome) {
  for (const char* body :
       {R"({"prompt":"a"})", R"({"prompt":"a","n":3,"best_of":3})", R"({"prompt":["a","b"],"n":2})",
        R"({"prompt":[1,2,3],"n":2})", R"({"prompt":[[1],[2,3],[4]]})"}) {
    const CompletionCall call = ReadCompletionCall(body, {}).value();
    EXPECT_EQ(CountAnswers(kCompletions, body, 8), call.prompts.size() * call.call.n) << body;
  }
}

TEST(AnswerCount, OnlyThoseThatAreComputedTogetherCount) {
  EXPECT_EQ(CountAnswers(kChat, R"({"messages":[],"n":5})", 2), 2u);
  EXPECT_EQ(CountAnswers(kCompletions, R"({"prompt":["a","b"],"n":2})", 3), 3u);
  EXPECT_EQ(CountAnswers(kLlamaCompletion, R"({"prompt":["a","b"]})", 3), 2u);
  EXPECT_EQ(CountAnswers(kEmbeddings, R"({"input":"a"})", 4), 1u);
  EXPECT_EQ(CountAnswers(kEmbeddings, R"({"input":["a","b","c"]})", 4), 3u);
  EXPECT_EQ(CountAnswers(kEmbeddings, R"({"input":["a","b","c"]})", 2), 2u);
}

TEST(AnswerCount, WhateverWillBeRefusedCountsOnce) {
  for (const char* body : {"", "{", "[]", R"({"prompt":[]})", R"({"prompt":"a","n":0})",
                           R"({"prompt":"a","n":"many"})", R"({"input":7})"}) {
    for (const std::string_view endpoint : {kChat, kCompletions, kEmbeddings}) {
      EXPECT_EQ(CountAnswers(endpoint, body, 4), 1u) << endpoint << " " << body;
    }
  }
}

TEST(AnswerCount, PathsWithOneAnswerCountOnceWhateverTheirBodySays) {
  for (const std::string_view endpoint : {kMessages, kResponses, kTokenize, kCountTokens}) {
    EXPECT_EQ(CountAnswers(endpoint, R"({"n":5,"input":["a","b"],"prompt":["a","b"]})", 4), 1u);
  }
}

TEST(AnswerCount, AStreamIsAskedForByItsFlagAlone) {
  EXPECT_TRUE(AsksForStream(kChat, R"({"prompt":"a","stream":true})"));
  EXPECT_FALSE(AsksForStream(kTokenize, R"({"stream":true})"));
  for (const char* body : {"", "{", R"({"stream":false})", R"({"stream":null})", R"({"stream":1})",
                           R"({"prompt":"\"stream\":true"})", R"([{"stream":true}])"}) {
    EXPECT_FALSE(AsksForStream(kChat, body)) << body;
  }
}

TEST(AnswerCount, TheTimeoutIsTheFieldsIfItIsGood) {
  EXPECT_EQ(TimeoutOf(R"({"prompt":"a","timeout":1.5})"), std::chrono::milliseconds(1500));
  for (const char* body : {"", "{", "[]", R"({"timeout":null})", R"({"timeout":0})",
                           R"({"timeout":"1"})", R"({"prompt":"\"timeout\":1"})"}) {
    EXPECT_FALSE(TimeoutOf(body)) << body;
  }
}

}  // namespace
}  // namespace troupe
