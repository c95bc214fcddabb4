// What is expected or offered of an answer is checked in the passes of a BatchLoop, and changes
// their number and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "runtime/batch_loop_for_test.h"

namespace troupe {
namespace {

TEST_F(BatchLoopTest, WhatIsExpectedIsCheckedWithThePromptInOnePass) {
  FakeRunner runner({.vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = std::vector<TokenId>(9, 7), .options = {.max_tokens = 12}};
  request.options.ignore_end = true;
  const std::vector<TokenId> answer = Alone(request).tokens;
  request.options.expected = answer;
  Add(loop, 1, request);
  RunToEnd(loop);
  EXPECT_EQ(runner.passes(), 1u);
  EXPECT_EQ(AnswerOf(1)->tokens, answer);
  EXPECT_EQ(AnswerOf(1)->usage.speculation.drafted, 11u);
  EXPECT_EQ(AnswerOf(1)->usage.speculation.accepted, 11u);
  EXPECT_EQ(AnswerOf(1)->usage.speculation.checks, 1u);
  EXPECT_EQ(loop.counters().speculation.accepted, 11u);
}

TEST_F(BatchLoopTest, OnlyWhatIsExpectedEndsWithTheFirstTokenThatIsNot) {
  FakeRunner runner({.vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = std::vector<TokenId>(9, 7), .options = {.max_tokens = 40}};
  request.options.ignore_end = true;
  const std::vector<TokenId> answer = Alone(request).tokens;
  request.options.expected.assign(answer.begin(), answer.begin() + 8);
  request.options.expected[5] ^= 1;
  request.options.only_expected = true;
  Add(loop, 1, request);
  RunToEnd(loop);
  EXPECT_EQ(runner.passes(), 1u);
  EXPECT_TRUE(std::ranges::equal(AnswerOf(1)->tokens, std::span(answer).first(6)));
  EXPECT_EQ(AnswerOf(1)->usage.speculation.accepted, 5u);
  request.options.expected[5] ^= 1;
  Add(loop, 2, request);
  RunToEnd(loop);
  EXPECT_TRUE(std::ranges::equal(AnswerOf(2)->tokens, std::span(answer).first(9)));
}

TEST_F(BatchLoopTest, WhatIsOfferedWhileAnAnswerIsWrittenIsCheckedSeveralTokensAPass) {
  // A pass takes ten milliseconds beside one for each row.
  const auto takes_long = [&](std::span<const PassRows>) {
    clock_.Advance(10'000'000);
    return false;
  };
  FakeRunner runner({.vocabulary = kByteVocabulary, .fails = takes_long, .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = std::vector<TokenId>(9, 7), .options = {.max_tokens = 90}};
  request.options.ignore_end = true;
  const std::vector<TokenId> answer = Alone(request).tokens;
  const auto offered = std::make_shared<OfferedDraft>();
  request.options.offered = offered;
  Add(loop, 1, request);
  for (int step = 0; step < 8; ++step) StepInto(loop);
  EXPECT_EQ(runner.passes(), 8u);
  offered->Offer(1, 5, {answer.begin() + 5, answer.end()});
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(1)->tokens, answer);
  EXPECT_LT(runner.passes(), 60u) << "most came several at a time";
  EXPECT_GT(offered->counts().right, 30u);
  EXPECT_EQ(offered->counts().checked, AnswerOf(1)->usage.speculation.drafted);
  EXPECT_EQ(offered->counts().right, AnswerOf(1)->usage.speculation.accepted);
}

TEST_F(BatchLoopTest, AnswersThatMayLoseQualityHaveNoDrafts) {
  FakeRunner runner({.limits = {.rows = 64, .sequences = 2, .context = 512, .exact = false},
                     .vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = std::vector<TokenId>(9, 7), .options = {.max_tokens = 6}};
  request.options.expected = Alone(request).tokens;
  Add(loop, 1, request);
  request.exact = true;
  Add(loop, 2, request);
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(1)->usage.speculation.drafted, 0u);
  EXPECT_GT(AnswerOf(2)->usage.speculation.drafted, 0u);
}

}  // namespace
}  // namespace troupe
