#include "server/answer_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(AnswerSize, AnAnswerThatCanBeSentIsAnsweredAsItWasAskedFor) {
  EXPECT_EQ(*TokensThatFit({.tokens = 100'000}), 100'000u);
  EXPECT_EQ(*TokensThatFit({.n = 128, .tokens = 4096}), 4096u);
  EXPECT_EQ(*TokensThatFit({.n = 2, .tokens = 1000, .logprobs = 20, .logprob_bytes = 80}), 1000u);
}

TEST(AnswerSize, OneThatCouldNotIsRefusedByTheFieldThatMakesItSoLong) {
  const auto why = [](const AnswerShape& shape) { return TokensThatFit(shape).status().message(); };
  EXPECT_THAT(why({.n = 11, .tokens = 1000, .logprobs = 20, .logprob_bytes = 80}),
              HasSubstr("request: n: an answer of up to 11000 tokens with their logprobs"));
  EXPECT_THAT(why({.tokens = 30'000, .logprobs = 20, .logprob_bytes = 80}),
              HasSubstr("request: max_tokens: "));
  EXPECT_THAT(why({.prompts = 128, .tokens = 5000}), HasSubstr("request: prompt: "));
  EXPECT_THAT(why({.tokens = 1, .prompt_tokens = 100'000, .logprobs = 1, .logprob_bytes = 40}),
              HasSubstr("request: prompt: "));
}

TEST(AnswerSize, WhereNobodyAskedForSoManyTokensThereAreAsManyAsFit) {
  AnswerShape shape{
      .n = 2, .tokens = 30'000, .tokens_are_asked_for = false, .logprobs = 20, .logprob_bytes = 80};
  shape.tokens = *TokensThatFit(shape);
  EXPECT_GT(shape.tokens, 1000u);
  EXPECT_LE(shape.Bytes(), kMostAnswerBytes);
  EXPECT_GT(shape.Bytes(), kMostAnswerBytes - 10'000);
  shape.prompt_tokens = 100'000;
  EXPECT_FALSE(TokensThatFit(shape).ok());
}

}  // namespace
}  // namespace troupe
