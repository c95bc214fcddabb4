// Hundreds of random interleavings of requests in a BatchLoop, each held to what it gets alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/batch_loop_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::vector<TokenId> RandomPrompt(Rng& rng, std::size_t most) {
  std::vector<TokenId> prompt(1 + rng.Below(most));
  for (TokenId& token : prompt) token = static_cast<TokenId>(rng.Below(kByteVocabulary));
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

// Somebody says how an answer goes on behind any of its tokens, rightly or not, early or late.
void OfferSome(Rng& rng, std::vector<TokenId> answer, OfferedDraft& offered) {
  const std::size_t from = rng.Below(answer.size() + 1);
  answer.erase(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(from));
  offered.Offer(rng.Below(1000), from, RandomExpectation(rng, answer));
}

using PromptLogits = std::vector<std::pair<TokenId, std::vector<float>>>;

PromptLogits LogitsOfPrompt(const std::vector<TokenId>& prompt) {
  const FakeRunner model({.vocabulary = kByteVocabulary});
  PromptLogits logits;
  for (std::size_t i = 1; i < prompt.size(); ++i) {
    logits.emplace_back(prompt[i], model.LogitsAfter(std::span(prompt).first(i)));
  }
  return logits;
}

// Requests join and leave at any moment, are cancelled, wait for memory, are cut into chunks of any
// size, have drafts that are right or wrong, from the beginning or as they go on, and passes fail:
// everyone gets the text that he would get alone.
TEST_F(BatchLoopTest, EveryRequestGetsTheTextItGetsAloneInAnyInterleaving) {
  const std::uint64_t seed = TestSeed();
  std::uint64_t guessed_right = 0, guessed_wrong = 0;
  std::uint64_t cancelled_requests = 0, failed_passes = 0, cache_hits = 0, waited = 0;
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
    FakeRunner runner(
        {.limits = {.rows = 1 + static_cast<std::uint32_t>(rng.Below(64)),
                    .sequences = 1 + static_cast<std::uint32_t>(rng.Below(12)),
                    .context = 512,
                    .cache_page = rng.Below(2) == 0 ? 0U : 16U,
                    .guesses = rng.Below(2) == 0 ? 64U << 10
                                                 : 1 + static_cast<std::uint32_t>(rng.Below(9)),
                    .guesses_behind_prompts = rng.Below(2) == 0,
                    .reads_experts = rng.Below(2) == 0},
         .memory = 160 + rng.Below(1500),
         .vocabulary = kByteVocabulary,
         .fails =
             [&](std::span<const PassRows> rows) {
               if (rows.size() > 1 && faults.Below(20) < passes_that_fail) return true;
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
      const BatchRequest& any = requests[rng.Below(requests.size())];
      if (any.options.offered != nullptr && rng.Below(4) == 0) {
        OfferSome(rng, Alone(any).tokens, *any.options.offered);
      }
      StepInto(loop);
      waited += loop.counters().waiting;
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
    const BatchCounters counters = loop.counters();
    cancelled_requests += counters.cancelled;
    failed_passes += counters.failed_passes;
    cache_hits += counters.cache_hits;
  }
  // All of it has happened.
  EXPECT_GT(guessed_right, 1000u);
  EXPECT_GT(guessed_wrong, 1000u);
  EXPECT_GT(cancelled_requests, 100u);
  EXPECT_GT(failed_passes, 100u);
  EXPECT_GT(cache_hits, 100u);
  EXPECT_GT(waited, 100u);
}

TEST_F(BatchLoopTest, AnAnswerThatBeganElsewhereGoesOnToTheSameBytes) {
  Rng rng(TestSeed());
  FakeRunner runner({.limits = {.rows = 16, .sequences = 3, .context = 512, .cache_page = 16},
                     .vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  std::map<RequestId, std::pair<BatchRequest, Answer>> expected;
  std::uint64_t chosen_here = 0;
  for (RequestId id = 1; id <= 60; ++id) {
    BatchRequest request = RandomRequest(rng);
    request.embed.reset();
    const Answer alone = Alone(request);
    const std::size_t cut = alone.tokens.empty() ? 0 : rng.Below(alone.tokens.size());
    request.options.begun.assign(alone.tokens.begin(),
                                 alone.tokens.begin() + static_cast<std::ptrdiff_t>(cut));
    expected.emplace(id, std::pair(request, alone));
    chosen_here += alone.tokens.size() - cut;
    Add(loop, id, request);
  }
  RunToEnd(loop);
  EXPECT_EQ(loop.counters().generated_tokens, chosen_here) << "what was begun is not chosen again";
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

}  // namespace
}  // namespace troupe
