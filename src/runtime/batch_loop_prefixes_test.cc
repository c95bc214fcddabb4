// What requests of a BatchLoop find read already, by others or by the conversation before them.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/batch_loop_for_test.h"

namespace troupe {
namespace {

TEST_F(BatchLoopTest, WhatRequestsBeginWithInCommonIsReadOnce) {
  FakeRunner runner({.limits = {.rows = 64, .sequences = 8, .context = 512, .cache_page = 16},
                     .vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  std::vector<TokenId> prompt(203, 7);
  std::vector<BatchRequest> requests;
  for (RequestId id = 0; id < 8; ++id) {
    prompt.back() = static_cast<TokenId>(id);
    BatchRequest request{.prompt = prompt, .options = {.max_tokens = 4}};
    request.options.sampler.seed = id;
    requests.push_back(request);
    Add(loop, id, std::move(request));
  }
  RunToEnd(loop);
  for (RequestId id = 0; id < 8; ++id) {
    EXPECT_EQ(AnswerOf(id)->text, Alone(requests[id]).text);
    EXPECT_EQ(AnswerOf(id)->usage.prompt_tokens, 203u);
    EXPECT_EQ(AnswerOf(id)->usage.cached_tokens, id == 0 ? 0u : 192u);
  }
  EXPECT_EQ(runner.rows(), 203u + 7 * (203 - 192) + 8 * 3);
  EXPECT_EQ(loop.counters().prompt_tokens, 203u + 7 * (203 - 192));
  EXPECT_EQ(loop.counters().cached_tokens, 7u * 192);
  EXPECT_EQ(loop.counters().cache_hits, 7u);
}

TEST_F(BatchLoopTest, RequestsWithDifferentSaltsShareNothingAndDoNotWaitForEachOther) {
  FakeRunner runner({.limits = {.rows = 64, .sequences = 8, .context = 512, .cache_page = 16},
                     .vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  const std::vector<std::string> salts = {"", "a", "b", "a", "", "b"};
  const BatchRequest request{.prompt = std::vector<TokenId>(203, 7), .options = {.max_tokens = 4}};
  for (RequestId id = 0; id < salts.size(); ++id) {
    BatchRequest one = request;
    one.salt = salts[id];
    Add(loop, id, std::move(one));
  }
  RunToEnd(loop);
  std::size_t read = 0;
  for (RequestId id = 0; id < salts.size(); ++id) {
    EXPECT_EQ(AnswerOf(id)->text, Alone(request).text);
    // The first of each salt reads all; the others find whole pages, or what it has left at its
    // end.
    const std::size_t cached = AnswerOf(id)->usage.cached_tokens;
    if (id < 3) {
      EXPECT_EQ(cached, 0u) << id;
    } else {
      EXPECT_GE(cached, 192u) << id;
    }
    read += 203 - cached;
  }
  EXPECT_EQ(loop.counters().prompt_tokens, read);
}

TEST_F(BatchLoopTest, AConversationGoesOnWhereItsLastAnswerEnded) {
  FakeRunner runner({.limits = {.rows = 64, .sequences = 2, .context = 512, .cache_page = 16},
                     .vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = std::vector<TokenId>(50, 7), .options = {.max_tokens = 9}};
  Add(loop, 1, request);
  RunToEnd(loop);
  const std::vector<TokenId> said = AnswerOf(1)->tokens;
  ASSERT_EQ(said.size(), 9u);
  request.prompt.insert(request.prompt.end(), said.begin(), said.end());
  request.prompt.push_back(1);
  Add(loop, 2, request);
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(2)->usage.cached_tokens, 58u);  // the last token was chosen, and not read
  EXPECT_EQ(AnswerOf(2)->text, Alone(request).text);
}

TEST_F(BatchLoopTest, ExactRequestsFindNothingOfThoseThatMayLoseQuality) {
  FakeRunner runner({.limits = {.rows = 64, .sequences = 2, .context = 512, .cache_page = 16},
                     .vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = std::vector<TokenId>(50, 7), .options = {.max_tokens = 1}};
  Add(loop, 1, request);
  RunToEnd(loop);
  request.exact = true;
  Add(loop, 2, request);
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(2)->usage.cached_tokens, 0u);
  Add(loop, 3, request);
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(3)->usage.cached_tokens, 49u);
}

TEST_F(BatchLoopTest, WhoWaitsForAPrefixReadsItAloneIfTheOtherLeaves) {
  FakeRunner runner({.limits = {.rows = 32, .sequences = 2, .context = 512, .cache_page = 256},
                     .vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  const BatchRequest request{.prompt = std::vector<TokenId>(300, 7), .options = {.max_tokens = 2}};
  const auto first = Add(loop, 1, request);
  Add(loop, 2, request);
  StepInto(loop);
  first->Cancel();
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(2)->usage.cached_tokens, 32u);  // what the other had read by then
  EXPECT_EQ(AnswerOf(2)->text, Alone(request).text);
}

}  // namespace
}  // namespace troupe
