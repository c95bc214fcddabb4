#include "runtime/batch_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/log.h"
#include "runtime/fake_runner_for_test.h"
#include "testing/test_seed.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr std::size_t kVocabulary = 256;  // the bytes: text of any kind

std::vector<TokenId> RandomPrompt(Rng& rng, std::size_t most) {
  std::vector<TokenId> prompt(1 + rng.Below(most));
  for (TokenId& token : prompt) token = static_cast<TokenId>(rng.Below(kVocabulary));
  return prompt;
}

// Half of them begin as one of a few texts do.
BatchRequest RandomRequest(Rng& rng) {
  BatchRequest request{.prompt = RandomPrompt(rng, 120), .options = {}};
  if (rng.Below(2) == 0) {
    Rng stem(rng.Below(3));
    const std::vector<TokenId> common = RandomPrompt(stem, 120);
    std::ranges::copy(std::span(common).first(std::min(common.size(), request.prompt.size())),
                      request.prompt.begin());
  }
  request.exact = rng.Below(4) == 0;
  request.options.max_tokens = rng.Below(40);
  request.options.sampler.seed = rng.Next();
  if (rng.Below(3) == 0) request.options.sampler.temperature = 0;
  if (rng.Below(3) == 0) request.options.stop = {"e", "Th"};
  if (rng.Below(6) == 0) request.embed = rng.Below(2) == 0 ? Pooling::kMean : Pooling::kLast;
  return request;
}

// What somebody may expect of an answer: it, or a part of it, or it with a mistake.
std::vector<TokenId> RandomExpectation(Rng& rng, std::vector<TokenId> answer) {
  if (rng.Below(3) == 0) answer.resize(rng.Below(answer.size() + 1));
  if (!answer.empty() && rng.Below(2) == 0) answer[rng.Below(answer.size())] ^= 1;
  return answer;
}

class BatchLoopTest : public testing::Test {
 protected:
  BatchLoopTest() : tokenizer_(MakeTokenizer(TinyByteLevelVocab()).value()) {}

  // What a request gets that has the model to itself.
  Answer Alone(const BatchRequest& request) const {
    const FakeRunner model({.vocabulary = kVocabulary});
    if (request.embed) {
      EmbeddingSum sum(*request.embed);
      for (std::size_t i = 0; i < request.prompt.size(); ++i) {
        sum.Add(model.LogitsAfter(std::span(request.prompt).first(i + 1)));
      }
      Answer answer;
      answer.embedding = sum.Value();
      return answer;
    }
    TextGeneration generation = TextGeneration::Make(*tokenizer_, request.prompt, request.options,
                                                     {.capacity = 512}, clock_)
                                    .value();
    SamplerScratch scratch;
    std::vector<TokenId> fed = request.prompt;
    generation.Read(fed.size());
    while (!generation.ended()) {
      for (const TokenId token : generation.NextTokens(1)) fed.push_back(token);
      EXPECT_TRUE(generation.Accept(model.LogitsAfter(fed), scratch).ok());
    }
    return std::move(generation).TakeAnswer();
  }

  // Somebody says how an answer goes on behind any of its tokens, rightly or not, early or late.
  void OfferSome(Rng& rng, const BatchRequest& request) const {
    if (request.options.offered == nullptr || rng.Below(4) != 0) return;
    std::vector<TokenId> answer = Alone(request).tokens;
    const std::size_t from = rng.Below(answer.size() + 1);
    answer.erase(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(from));
    request.options.offered->Offer(rng.Below(1000), from, RandomExpectation(rng, answer));
  }

  using PromptLogits = std::vector<std::pair<TokenId, std::vector<float>>>;
  static PromptLogits LogitsOfPrompt(const std::vector<TokenId>& prompt) {
    const FakeRunner model({.vocabulary = kVocabulary});
    PromptLogits logits;
    for (std::size_t i = 1; i < prompt.size(); ++i) {
      logits.emplace_back(prompt[i], model.LogitsAfter(std::span(prompt).first(i)));
    }
    return logits;
  }

  std::shared_ptr<Ticket> Add(BatchLoop& loop, RequestId id, BatchRequest request) const {
    EXPECT_TRUE(loop.Check(request).ok());
    auto ticket = std::make_shared<Ticket>(id);
    loop.Add(ticket, std::move(request), clock_.Now());
    return ticket;
  }
  void StepInto(BatchLoop& loop) {
    for (EndedRequest& ended : loop.Step()) {
      const RequestId id = ended.ticket->id();
      EXPECT_TRUE(answers_.emplace(id, std::move(ended.answer)).second) << "ended twice";
    }
  }
  void RunToEnd(BatchLoop& loop) {
    for (int step = 0; loop.size() > 0; ++step) {
      ASSERT_LT(step, 10'000) << "requests that never end";
      StepInto(loop);
    }
  }
  const Result<Answer>& AnswerOf(RequestId id) const { return answers_.at(id); }

  std::unique_ptr<Tokenizer> tokenizer_;
  ManualClock clock_;
  std::map<RequestId, Result<Answer>> answers_;
};

TEST_F(BatchLoopTest, PassesAreCountedByTheirRows) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 2, .context = 512},
                     .vocabulary = kVocabulary,
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

// Requests join and leave at any moment, are cancelled, wait for memory, are cut into chunks of any
// size, have drafts that are right or wrong, from the beginning or as they go on, and passes fail:
// everyone gets the text that he would get alone.
TEST_F(BatchLoopTest, EveryRequestGetsTheTextItGetsAloneInAnyInterleaving) {
  const std::uint64_t seed = TestSeed();
  std::uint64_t guessed_right = 0, guessed_wrong = 0;
  for (std::uint64_t round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    Rng rng(seed + round);
    answers_.clear();
    std::vector<BatchRequest> requests(1 + rng.Below(12));
    for (BatchRequest& request : requests) {
      request = RandomRequest(rng);
      if (request.embed) continue;
      if (rng.Below(2) == 0) request.options.offered = std::make_shared<OfferedDraft>();
      if (rng.Below(2) == 0) continue;
      request.options.expected = RandomExpectation(rng, Alone(request).tokens);
      request.options.only_expected = rng.Below(3) == 0;
    }
    const std::vector<std::string> drafters = DraftChoiceNames();
    // Its rows make every pass fail; it fails, and nobody else does.
    const RequestId poisoned = rng.Below(3) == 0 ? rng.Below(requests.size()) : requests.size();
    const std::uint64_t passes_that_fail = rng.Below(2) * 4;
    Rng faults(seed + round);
    FakeRunner runner({.limits = {.rows = 1 + static_cast<std::uint32_t>(rng.Below(64)),
                                  .sequences = 1 + static_cast<std::uint32_t>(rng.Below(12)),
                                  .context = 512,
                                  .cache_page = rng.Below(2) == 0 ? 0U : 16U},
                       .memory = 160 + rng.Below(1500),
                       .vocabulary = kVocabulary,
                       .fails =
                           [&](std::span<const PassRows> rows) {
                             if (rows.size() > 1 && faults.Below(20) < passes_that_fail)
                               return true;
                             return std::ranges::count(rows, poisoned, &PassRows::request) > 0;
                           },
                       .clock = &clock_,
                       .forgets = [&] { return faults.Below(10) == 0; }});
    BatchLoop loop(runner, *tokenizer_, clock_,
                   {.target_seconds = 0.05 * rng.Uniform(), .least_chunk = 1},
                   *ParseDraftChoice(drafters[rng.Below(drafters.size())]));
    std::map<RequestId, std::shared_ptr<Ticket>> tickets;
    std::set<RequestId> cancelled;
    std::map<RequestId, PromptLogits> shown;
    while (tickets.size() < requests.size() || loop.size() > 0) {
      if (tickets.size() < requests.size() && rng.Below(4) == 0) {
        const RequestId id = tickets.size();
        BatchRequest request = requests[id];
        if (id % 5 == 0) {
          request.on_prompt = [&shown, id](TokenId token, std::span<const float> logits) {
            shown[id].emplace_back(token, std::vector(logits.begin(), logits.end()));
          };
        }
        tickets[id] = Add(loop, id, std::move(request));
      }
      if (!tickets.empty() && rng.Below(60) == 0) {
        const RequestId id = rng.Below(tickets.size());
        tickets[id]->Cancel();
        cancelled.insert(id);
      }
      OfferSome(rng, requests[rng.Below(requests.size())]);
      StepInto(loop);
    }
    ASSERT_EQ(answers_.size(), requests.size());
    for (RequestId id = 0; id < requests.size(); ++id) {
      const Result<Answer>& answer = AnswerOf(id);
      if (id == poisoned && !answer.ok()) {
        EXPECT_EQ(answer.status().code(), Code::kDataLoss);
        continue;
      }
      ASSERT_TRUE(answer.ok()) << answer.status().ToString();
      EXPECT_TRUE(id != poisoned || cancelled.contains(id));
      const Answer alone = Alone(requests[id]);
      if (answer->finish == FinishReason::kCancelled) {
        EXPECT_TRUE(cancelled.contains(id));
        const std::size_t written = answer->tokens.size();
        ASSERT_LE(written, alone.tokens.size());
        EXPECT_TRUE(std::ranges::equal(answer->tokens, std::span(alone.tokens).first(written)));
      } else {
        EXPECT_EQ(answer->text, alone.text);
        EXPECT_EQ(answer->tokens, alone.tokens);
        EXPECT_EQ(answer->finish, alone.finish);
        EXPECT_EQ(answer->embedding, alone.embedding);
        if (id % 5 == 0) {
          EXPECT_EQ(shown[id], LogitsOfPrompt(requests[id].prompt));
        }
        const Usage& usage = answer->usage;
        EXPECT_EQ(usage.expert_uses + usage.cached_tokens,
                  usage.prompt_tokens + usage.decode_steps +
                      (usage.speculation.drafted - usage.speculation.accepted));
      }
    }
    guessed_right += runner.guessed_right(), guessed_wrong += runner.guessed_wrong();
  }
  EXPECT_GT(guessed_right, 1000u);
  EXPECT_GT(guessed_wrong, 1000u);
}

TEST_F(BatchLoopTest, WhatIsExpectedIsCheckedWithThePromptInOnePass) {
  FakeRunner runner({.vocabulary = kVocabulary});
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
  FakeRunner runner({.vocabulary = kVocabulary});
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
  FakeRunner runner({.vocabulary = kVocabulary, .fails = takes_long, .clock = &clock_});
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
                     .vocabulary = kVocabulary});
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

TEST_F(BatchLoopTest, RequestsShareTheirPasses) {
  FakeRunner runner({.vocabulary = kVocabulary});
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

TEST_F(BatchLoopTest, WhatRequestsBeginWithInCommonIsReadOnce) {
  FakeRunner runner({.limits = {.rows = 64, .sequences = 8, .context = 512, .cache_page = 16},
                     .vocabulary = kVocabulary});
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

TEST_F(BatchLoopTest, AConversationGoesOnWhereItsLastAnswerEnded) {
  FakeRunner runner({.limits = {.rows = 64, .sequences = 2, .context = 512, .cache_page = 16},
                     .vocabulary = kVocabulary});
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

TEST_F(BatchLoopTest, AnAnswerThatBeganElsewhereGoesOnToTheSameBytes) {
  Rng rng(TestSeed());
  FakeRunner runner({.limits = {.rows = 16, .sequences = 3, .context = 512, .cache_page = 16},
                     .vocabulary = kVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  std::map<RequestId, std::pair<BatchRequest, Answer>> expected;
  for (RequestId id = 1; id <= 60; ++id) {
    BatchRequest request = RandomRequest(rng);
    request.embed.reset();
    const Answer alone = Alone(request);
    const std::size_t cut = alone.tokens.empty() ? 0 : rng.Below(alone.tokens.size());
    request.options.begun.assign(alone.tokens.begin(),
                                 alone.tokens.begin() + static_cast<std::ptrdiff_t>(cut));
    expected.emplace(id, std::pair(request, alone));
    Add(loop, id, request);
  }
  RunToEnd(loop);
  for (const auto& [id, pair] : expected) {
    const auto& [request, alone] = pair;
    const Answer& answer = AnswerOf(id).value();
    EXPECT_EQ(answer.tokens, alone.tokens);
    EXPECT_EQ(answer.text, alone.text);
    EXPECT_EQ(answer.finish, alone.finish);
    EXPECT_EQ(answer.usage.prompt_tokens, request.prompt.size());
    EXPECT_LE(answer.usage.cached_tokens, request.prompt.size());
  }
}

TEST_F(BatchLoopTest, ExactRequestsFindNothingOfThoseThatMayLoseQuality) {
  FakeRunner runner({.limits = {.rows = 64, .sequences = 2, .context = 512, .cache_page = 16},
                     .vocabulary = kVocabulary});
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
                     .vocabulary = kVocabulary});
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

TEST_F(BatchLoopTest, OnePassIsEnoughToCancel) {
  FakeRunner runner({.vocabulary = kVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  const auto ticket = Add(loop, 1, {.prompt = {1}, .options = {.max_tokens = 400}});
  StepInto(loop);
  StepInto(loop);
  ticket->Cancel();
  ticket->Cancel();
  StepInto(loop);
  EXPECT_EQ(loop.size(), 0u);
  EXPECT_EQ(runner.passes(), 2u);
  EXPECT_EQ(AnswerOf(1)->finish, FinishReason::kCancelled);
  EXPECT_EQ(AnswerOf(1)->tokens.size(), 2u);
  EXPECT_EQ(loop.counters().cancelled, 1u);
}

TEST_F(BatchLoopTest, ARequestCancelledBeforeAllAreEndedKeepsItsAnswer) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 2, .context = 512}});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (RequestId id = 0; id < 4; ++id) {  // two run, two wait
    tickets.push_back(Add(loop, id, {.prompt = {1}, .options = {.max_tokens = 400}}));
  }
  StepInto(loop);
  tickets[0]->Cancel();
  tickets[2]->Cancel();
  for (EndedRequest& ended : loop.EndAll(Status(Code::kUnavailable, "closed"))) {
    answers_.emplace(ended.ticket->id(), std::move(ended.answer));
  }
  ASSERT_EQ(answers_.size(), 4u);
  EXPECT_EQ(AnswerOf(0)->finish, FinishReason::kCancelled);
  EXPECT_EQ(AnswerOf(0)->tokens.size(), 1u);
  EXPECT_EQ(AnswerOf(1).status().code(), Code::kUnavailable);
  EXPECT_EQ(AnswerOf(2)->finish, FinishReason::kCancelled);
  EXPECT_EQ(AnswerOf(3).status().code(), Code::kUnavailable);
  EXPECT_EQ(loop.counters().cancelled, 2u);
  EXPECT_EQ(loop.counters().failed, 2u);
}

TEST_F(BatchLoopTest, AWaitingRequestIsCancelledWithoutAPass) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 1, .context = 512}});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  Add(loop, 1, {.prompt = {1}, .options = {.max_tokens = 3}});
  Add(loop, 2, {.prompt = {1}, .options = {.max_tokens = 3}})->Cancel();
  StepInto(loop);
  EXPECT_EQ(AnswerOf(2)->finish, FinishReason::kCancelled);
  EXPECT_EQ(AnswerOf(2)->usage.prompt_tokens, 0u);
  RunToEnd(loop);
  EXPECT_TRUE(AnswerOf(1).ok());
}

TEST_F(BatchLoopTest, ARequestWaitsUntilMemoryForAllOfItIsFree) {
  FakeRunner runner({.memory = 100, .vocabulary = kVocabulary, .clock = &clock_});
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

TEST_F(BatchLoopTest, ASmallRequestDoesNotOvertakeOneThatWaitsForMemory) {
  FakeRunner runner({.memory = 100, .vocabulary = kVocabulary});
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

TEST_F(BatchLoopTest, AnExpertThatCannotBeReadFailsOnlyWhoNeedsIt) {
  FakeRunner runner({.vocabulary = kVocabulary, .fails = [](std::span<const PassRows> rows) {
                       return std::ranges::count(rows, RequestId{2}, &PassRows::request) > 0;
                     }});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  for (RequestId id = 1; id <= 3; ++id) {
    Add(loop, id, {.prompt = {1, 2}, .options = {.max_tokens = 5}});
  }
  RunToEnd(loop);
  EXPECT_TRUE(AnswerOf(1).ok());
  EXPECT_EQ(AnswerOf(2).status().message(), "an expert cannot be read");
  EXPECT_TRUE(AnswerOf(3).ok());
  EXPECT_EQ(loop.counters().failed, 1u);
  EXPECT_EQ(loop.counters().failed_passes, 2u);  // together, and request 2 alone
  // What a failed pass has read counts as well, and to whom it was read for.
  EXPECT_EQ(loop.counters().experts.reads, runner.reads());
  EXPECT_EQ(AnswerOf(1)->usage.experts.reads, 6u);  // five passes, and the one that failed
}

TEST_F(BatchLoopTest, ARequestIsEndedAtItsDeadline) {
  FakeRunner runner({.vocabulary = kVocabulary, .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = {1}, .options = {.max_tokens = 400}};
  request.deadline = clock_.Now() + 10'000'000;  // a row takes a millisecond
  Add(loop, 1, std::move(request));
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(1).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(runner.passes(), 11u);
}

TEST_F(BatchLoopTest, ALongPromptBesideDecodesIsReadInChunksOfTheTargetTime) {
  FakeRunner runner({.limits = {.rows = 512, .sequences = 9, .context = 4096},
                     .memory = 9 * 4096,
                     .vocabulary = kVocabulary,
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

}  // namespace
}  // namespace troupe
