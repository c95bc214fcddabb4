// What goes into the passes of a BatchLoop, how it cuts prompts, and what it tells of its requests.
#include "runtime/batch_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "runtime/batch_loop_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(BatchLoopTest, PassesAreCountedByTheirRows) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 2, .context = 512},
                     .vocabulary = kByteVocabulary,
                     .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {.target_seconds = 10, .least_chunk = 1});
  BatchRequest request{.prompt = std::vector<TokenId>(11, 65), .options = {}};
  request.options.max_tokens = 4;
  request.options.ignore_end = true;
  Add(loop, 1, std::move(request));
  RunToEnd(loop);
  PassRowCounts expected;
  for (const std::uint64_t rows : {8, 3, 1, 1, 1}) expected.Add(rows);
  EXPECT_EQ(loop.counters().pass_rows, expected);
  EXPECT_EQ(expected.rows, 14u);
  EXPECT_EQ(expected.passes[0], 3u);  // of 1 row
  EXPECT_EQ(expected.passes[2], 1u);  // of 3 or 4
  EXPECT_EQ(expected.passes[3], 1u);  // of 5 to 8
}

TEST(PassRowCountsOfManyRows, StandBehindTheLastBound) {
  PassRowCounts counts;
  counts.Add(4096);
  counts.Add(4097);
  EXPECT_EQ(counts.passes[PassRowCounts::kBounds - 1], 1u);
  EXPECT_EQ(counts.passes[PassRowCounts::kBounds], 1u);
}

TEST_F(BatchLoopTest, RequestsShareTheirPasses) {
  FakeRunner runner({.vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  for (RequestId id = 0; id < 8; ++id) {
    BatchRequest request{.prompt = {1, 2, 3}, .options = {.max_tokens = 10}};
    request.options.sampler.seed = id;
    Add(loop, id, std::move(request));
  }
  RunToEnd(loop);
  EXPECT_EQ(runner.passes(), 10u);  // the prompts together, then nine passes of eight rows
  EXPECT_EQ(loop.counters().generated_tokens, 80u);
  EXPECT_EQ(loop.counters().finished, 8u);
}

class EncodedPrompts : public BatchLoopTest {
 protected:
  static constexpr TokenId kStart = 250;

  // The last of its tokens is the decoder's.
  static BatchRequest OfLength(std::size_t length) {
    BatchRequest request{.prompt = std::vector<TokenId>(length, static_cast<TokenId>(length)),
                         .options = {.max_tokens = 12}};
    request.prompt.back() = kStart;
    request.options.ignore_end = true;
    return request;
  }

  FakeRunner runner_{{.limits = {.rows = 64,
                                 .sequences = 4,
                                 .context = 512,
                                 .decoder_start = kStart,
                                 .longest_encoded = 61},
                      .vocabulary = kByteVocabulary,
                      .clock = &clock_}};
  BatchLoop loop_{runner_, *tokenizer_, clock_, {.target_seconds = 0.02, .least_chunk = 4}};
};

TEST_F(EncodedPrompts, AreReadInOnePassOrRefused) {
  std::vector<BatchRequest> requests;
  for (const std::size_t length : {61, 40, 2, 61, 22}) requests.push_back(OfLength(length));
  for (RequestId id = 0; id < requests.size(); ++id) Add(loop_, id, requests[id]);
  RunToEnd(loop_);
  for (RequestId id = 0; id < requests.size(); ++id) {
    ASSERT_TRUE(AnswerOf(id).ok());
    EXPECT_EQ(AnswerOf(id)->text, Alone(requests[id]).text);
  }
  const Status refused = loop_.Check(OfLength(62));
  EXPECT_TRUE(refused.context_full());
  EXPECT_THAT(refused.message(), HasSubstr("62 tokens, and the encoder reads at most 61"));
  BatchRequest embeds = OfLength(61);
  embeds.embed = Pooling::kMean;
  EXPECT_EQ(loop_.Check(embeds).code(), Code::kUnimplemented);
}

TEST_F(EncodedPrompts, WithoutTheTokenBetweenEncoderAndDecoderAreRefused) {
  const std::vector<TokenId> prompts[] = {{4, 5, 6}, {kStart, 4}, {7}};
  for (const std::vector<TokenId>& prompt : prompts) {
    const Status refused = loop_.Check({.prompt = prompt, .options = {}});
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_FALSE(refused.context_full());
    EXPECT_THAT(refused.message(), HasSubstr("the token 250 that the decoder begins with"));
  }
}

TEST_F(EncodedPrompts, WhatFollowsThemIsTheDecodersAndMayBeLongAndCut) {
  std::vector<BatchRequest> requests = {OfLength(61), OfLength(61), OfLength(5)};
  for (BatchRequest& request : requests) {
    request.options.begun.assign(100, 65);
    request.options.max_tokens = 112;
  }
  requests[2].prompt.insert(requests[2].prompt.end(), 90, 66);
  for (RequestId id = 0; id < requests.size(); ++id) Add(loop_, id, requests[id]);
  RunToEnd(loop_);
  for (RequestId id = 0; id < requests.size(); ++id) {
    ASSERT_TRUE(AnswerOf(id).ok());
    EXPECT_EQ(AnswerOf(id)->text, Alone(requests[id]).text);
  }
}

TEST_F(BatchLoopTest, ALongPromptBesideDecodesIsReadInChunksOfTheTargetTime) {
  FakeRunner runner({.limits = {.rows = 512, .sequences = 9, .context = 4096},
                     .memory = 9 * 4096,
                     .vocabulary = kByteVocabulary,
                     .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {.target_seconds = 0.1, .least_chunk = 4});
  for (RequestId id = 0; id < 8; ++id) {
    Add(loop, id, {.prompt = {1}, .options = {.max_tokens = 1000}});
  }
  StepInto(loop);
  StepInto(loop);  // a decode is measured as well
  const auto longest_pass = [&](RequestId id) {
    Add(loop, id, {.prompt = std::vector<TokenId>(2048, 7), .options = {.max_tokens = 1}});
    Nanos longest = 0;
    while (!answers_.contains(id)) {
      const Nanos start = clock_.Now();
      StepInto(loop);
      longest = std::max(longest, clock_.Now() - start);
    }
    return longest;
  };
  const Nanos first = longest_pass(8);
  EXPECT_LE(first, 100'000'000);
  EXPECT_GE(first, 90'000'000);
  loop.set_target_seconds(0.05);
  const Nanos second = longest_pass(9);
  EXPECT_LE(second, 50'000'000);
  EXPECT_GE(second, 40'000'000);
  for (EndedRequest& ended : loop.EndAll(Status(Code::kCancelled, "enough"))) {
    EXPECT_EQ(ended.answer.status().code(), Code::kCancelled);
  }
  EXPECT_EQ(loop.size(), 0u);
}

TEST_F(BatchLoopTest, BesideDecodesOthersHaveWhatTheTargetLeavesAndTheNextPassIsAsMuchShorter) {
  FakeRunner runner({.limits = {.rows = 512, .sequences = 9, .context = 4096},
                     .memory = 9 * 4096,
                     .vocabulary = kByteVocabulary,
                     .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {.target_seconds = 0.1, .least_chunk = 4});
  const auto a_millisecond_each = [](std::uint32_t rows) { return 1e-3 * rows; };
  EXPECT_EQ(loop.RowsBetween(a_millisecond_each, 512), 512u) << "nobody waits";
  for (RequestId id = 0; id < 8; ++id) {
    BatchRequest request{.prompt = {1}, .options = {.max_tokens = 1000}};
    request.options.ignore_end = true;
    Add(loop, id, std::move(request));
  }
  for (int i = 0; i < 3; ++i) StepInto(loop);
  EXPECT_NEAR(loop.RowsBetween(a_millisecond_each, 512), 92, 1) << "beside eight decodes";
  EXPECT_EQ(loop.RowsBetween(a_millisecond_each, 20), 20u);
  Add(loop, 8, {.prompt = std::vector<TokenId>(2048, 7), .options = {.max_tokens = 1}});
  const auto pass_ms = [&] {
    const Nanos start = clock_.Now();
    StepInto(loop);
    return static_cast<double>(clock_.Now() - start) * 1e-6;
  };
  while (pass_ms() < 90) {
  }
  const std::uint32_t rows = loop.RowsBetween(a_millisecond_each, 512);
  EXPECT_NEAR(rows, 46, 1) << "half of it is for the loop's own prompts";
  loop.NoteBetween(1e-3 * rows);
  EXPECT_NEAR(pass_ms() + rows, 95, 5);
  EXPECT_NEAR(pass_ms(), 95, 5) << "nobody else was there";
  for (EndedRequest& ended : loop.EndAll(Status(Code::kCancelled, "enough"))) {
    EXPECT_EQ(ended.answer.status().code(), Code::kCancelled);
  }
}

TEST_F(BatchLoopTest, WarnsOnceOfATargetThatDecodesAloneMiss) {
  std::vector<std::string> warnings;
  SetWarningSink([&warnings](std::string_view line) { warnings.emplace_back(line); });
  const auto run = [&](double target_seconds) {
    FakeRunner runner({.limits = {.rows = 64, .sequences = 2, .context = 512}, .clock = &clock_});
    BatchLoop loop(runner, *tokenizer_, clock_, {.target_seconds = target_seconds});
    BatchRequest request{.prompt = {1}, .options = {.max_tokens = 60}};
    request.options.ignore_end = true;
    Add(loop, 1, request);
    for (int i = 0; i < 4; ++i) StepInto(loop);
    request.prompt.assign(400, 2);
    Add(loop, 2, request);
    RunToEnd(loop);
    answers_.clear();
    return warnings.size();
  };
  EXPECT_EQ(run(0.01), 0u);  // a decode takes a millisecond
  EXPECT_EQ(run(0.0005), 1u);
  EXPECT_THAT(warnings.at(0), HasSubstr("--pass-ms"));
  SetWarningSink({});
}

TEST_F(BatchLoopTest, SaysHowFarEachRequestIs) {
  using Stage = RequestState::Stage;
  FakeRunner runner({.limits = {.rows = 8, .sequences = 1, .context = 512}, .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = std::vector<TokenId>(12, 1), .options = {.max_tokens = 4}};
  request.options.ignore_end = true;
  Add(loop, 7, request);
  Add(loop, 9, request);
  StepInto(loop);
  std::vector<RequestState> requests = loop.Requests(10);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].id, 7u);
  EXPECT_EQ(requests[0].stage, Stage::kReading);
  EXPECT_EQ(requests[0].prompt_tokens, 12u);
  EXPECT_EQ(requests[0].prompt_read, 8u);
  EXPECT_EQ(requests[0].generated_tokens, 0u);
  EXPECT_NEAR(requests[0].seconds, 0.008, 1e-9);  // a millisecond a row
  EXPECT_EQ(requests[1].id, 9u);
  EXPECT_EQ(requests[1].stage, Stage::kWaiting);
  EXPECT_EQ(requests[1].prompt_tokens, 12u);
  EXPECT_EQ(requests[1].prompt_read, 0u);
  EXPECT_NEAR(requests[1].seconds, 0.008, 1e-9);
  EXPECT_EQ(loop.Requests(1).size(), 1u);
  StepInto(loop);
  requests = loop.Requests(10);
  EXPECT_EQ(requests[0].stage, Stage::kDecoding);
  EXPECT_EQ(requests[0].prompt_read, 12u);
  EXPECT_EQ(requests[0].generated_tokens, 1u);
  RunToEnd(loop);
  EXPECT_TRUE(loop.Requests(10).empty());
}

}  // namespace
}  // namespace troupe
