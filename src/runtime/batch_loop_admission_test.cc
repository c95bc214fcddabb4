// Which requests a BatchLoop takes, and which of them wait for memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "runtime/batch_loop_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(BatchLoopTest, ARequestWaitsUntilMemoryForAllOfItIsFree) {
  FakeRunner runner({.memory = 100, .vocabulary = kByteVocabulary, .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  for (RequestId id = 0; id < 3; ++id) {
    Add(loop, id, {.prompt = {1, 2}, .options = {.max_tokens = 48}});  // 50 tokens each
  }
  StepInto(loop);
  EXPECT_EQ(loop.counters().waiting, 1u);
  RunToEnd(loop);
  EXPECT_EQ(runner.most_together(), 2u);
  EXPECT_EQ(loop.counters().finished, 3u);
  EXPECT_EQ(AnswerOf(0)->usage.queue_seconds, 0);
  // A row takes a millisecond: those before it read two tokens each and feed 47 of their own.
  EXPECT_NEAR(AnswerOf(2)->usage.queue_seconds, 0.098, 1e-9);
}

TEST_F(BatchLoopTest, TellsHowManyTokensOfPromptsAreStillToBeRead) {
  FakeRunner runner({.memory = 100, .vocabulary = kByteVocabulary, .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {.most_rows = 8});
  EXPECT_EQ(loop.counters().to_read, 0u);
  Add(loop, 1, {.prompt = std::vector<TokenId>(20, 1), .options = {.max_tokens = 70}});
  Add(loop, 2,
      {.prompt = std::vector<TokenId>(25, 1),
       .options = {.max_tokens = 45, .begun = std::vector<TokenId>(5, 1)}});
  EXPECT_EQ(loop.counters().to_read, 50u);
  StepInto(loop);
  EXPECT_EQ(loop.counters().to_read, 42u);
  EXPECT_EQ(loop.counters().waiting, 1u);
  RunToEnd(loop);
  EXPECT_EQ(loop.counters().to_read, 0u);
  EXPECT_GT(loop.counters().read_seconds, 0);
}

TEST_F(BatchLoopTest, ASmallRequestDoesNotOvertakeOneThatWaitsForMemory) {
  FakeRunner runner({.memory = 100, .vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  Add(loop, 1, {.prompt = {1}, .options = {.max_tokens = 59}});
  Add(loop, 2, {.prompt = {1}, .options = {.max_tokens = 89}});
  Add(loop, 3, {.prompt = {1}, .options = {.max_tokens = 1}});
  StepInto(loop);
  EXPECT_EQ(loop.counters().waiting, 2u);
  RunToEnd(loop);
  EXPECT_EQ(loop.counters().finished, 3u);
}

TEST_F(BatchLoopTest, ARequestThatNeverFitsIsRefusedAtOnce) {
  FakeRunner runner({.memory = 50});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  const Status status = loop.Check({.prompt = std::vector<TokenId>(513, 1), .options = {}});
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("513 tokens"));
  // More than all memory, though not more than a context.
  Add(loop, 1, {.prompt = {1}, .options = {.max_tokens = 60}});
  Add(loop, 2, {.prompt = {1}, .options = {.max_tokens = 6}});
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(1).status().code(), Code::kResourceExhausted);
  EXPECT_TRUE(AnswerOf(2).ok());
}

TEST_F(BatchLoopTest, RefusesTokensOutsideTheVocabularyAndBadSampling) {
  FakeRunner runner({});
  const BatchLoop loop(runner, *tokenizer_, clock_, {});
  EXPECT_EQ(loop.Check({.prompt = {-1}, .options = {}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(loop.Check({.prompt = {100'000}, .options = {}}).code(), Code::kInvalidArgument);
  BatchRequest begun{.prompt = {1}, .options = {}};
  begun.options.begun = {100'000};
  EXPECT_EQ(loop.Check(begun).code(), Code::kInvalidArgument);
  BatchRequest request{.prompt = {1}, .options = {}};
  request.options.sampler.top_p = 7;
  EXPECT_EQ(loop.Check(request).code(), Code::kInvalidArgument);
}

TEST_F(BatchLoopTest, RefusesABiasForATokenOutsideTheVocabularyBeforeThePromptIsRead) {
  FakeRunner runner({});
  const BatchLoop loop(runner, *tokenizer_, clock_, {});
  const auto check = [&](TokenId token) {
    BatchRequest request{.prompt = {1}, .options = {}};
    request.options.sampler.logit_bias = {{token, 1.0F}};
    return loop.Check(request);
  };
  const auto size = static_cast<TokenId>(tokenizer_->size());
  EXPECT_EQ(check(size - 1), OkStatus());
  EXPECT_EQ(check(size).code(), Code::kInvalidArgument);
  EXPECT_EQ(check(-1).code(), Code::kInvalidArgument);
  EXPECT_THAT(check(size).message(), HasSubstr("not in the vocabulary"));
}

TEST_F(BatchLoopTest, TokensThatEndAnAnswerAreOfTheVocabulary) {
  FakeRunner runner({});
  const BatchLoop loop(runner, *tokenizer_, clock_, {});
  const auto size = static_cast<TokenId>(tokenizer_->size());
  EXPECT_TRUE(loop.Check({.prompt = {1}, .options = {.stop_tokens = {0, size - 1}}}).ok());
  EXPECT_THAT(loop.Check({.prompt = {1}, .options = {.stop_tokens = {0, size}}}).message(),
              HasSubstr("a stop at token id"));
}

}  // namespace
}  // namespace troupe
