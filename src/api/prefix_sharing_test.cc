// Requests that begin alike, through the front door: whatever they share, in whatever order they
// come, go and are cancelled, each gets the bytes that it gets from a model without a prefix cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "api/tiny_model_for_test.h"
#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Texts that part from each other at any token, as those of a tree do.
std::vector<Request> RequestsThatBeginAlike(Rng& rng, std::size_t count, std::size_t most_prompt,
                                            std::size_t most_tokens) {
  std::vector<std::vector<TokenId>> prompts;
  std::vector<Request> requests;
  while (requests.size() < count) {
    std::vector<TokenId> prompt;
    if (!prompts.empty() && rng.Below(5) > 0) {
      prompt = prompts[rng.Below(prompts.size())];
      prompt.resize(1 + rng.Below(prompt.size()));
    }
    const std::size_t length = std::max(prompt.size(), 1 + rng.Below(most_prompt));
    while (prompt.size() < length) prompt.push_back(static_cast<TokenId>(260 + rng.Below(200)));
    prompts.push_back(prompt);
    Request request{.prompt = prompt, .max_tokens = 1 + rng.Below(most_tokens)};
    request.sampling = {.temperature = rng.Below(3) == 0 ? 0.0 : 0.9, .seed = rng.Next() % 1000};
    request.ignore_end = true;
    requests.push_back(std::move(request));
  }
  return requests;
}

struct Drawn {
  std::size_t request = 0;  // its number
  Generation generation;
  bool cancelled = false, counted = false;
};

class Schedules {
 public:
  Schedules(Model& shared, Model& alone, std::vector<Request> requests)
      : shared_(shared), requests_(std::move(requests)) {
    for (const Request& request : requests_) {
      answers_.push_back(alone.Start(request)->Wait().value());
      EXPECT_EQ(answers_.back().usage.cached_tokens, 0u);
    }
  }

  // Requests in a random order, some at the same time, some cancelled.
  void Run(Rng& rng, std::size_t count) {
    std::vector<Drawn> drawn;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t number = rng.Below(requests_.size());
      drawn.push_back({number, shared_.Start(requests_[number]).value()});
      if (rng.Below(3) == 0) Check(drawn[rng.Below(drawn.size())]);
      if (rng.Below(6) == 0) {
        Drawn& one = drawn[rng.Below(drawn.size())];
        one.generation.Cancel();
        one.cancelled = true;
      }
    }
    for (Drawn& one : drawn) Check(one);
  }
  std::size_t cached() const { return cached_; }

 private:
  void Check(Drawn& one) {
    const Result<Answer> answer = one.generation.Wait();
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    const Answer& expected = answers_[one.request];
    if (answer->finish == FinishReason::kCancelled) {
      EXPECT_TRUE(one.cancelled);
      EXPECT_TRUE(std::ranges::equal(answer->tokens,
                                     std::span(expected.tokens).first(answer->tokens.size())));
      return;
    }
    EXPECT_EQ(answer->tokens, expected.tokens) << "request " << one.request;
    EXPECT_EQ(answer->text, expected.text);
    EXPECT_EQ(answer->usage.prompt_tokens, expected.usage.prompt_tokens);
    if (!std::exchange(one.counted, true)) cached_ += answer->usage.cached_tokens;
  }

  Model& shared_;
  std::vector<Request> requests_;
  std::vector<Answer> answers_;
  std::size_t cached_ = 0;
};

void RunSchedules(std::uint32_t context, std::size_t requests, std::size_t rounds) {
  Rng rng(TestSeed());
  ModelOptions options{.context = context, .threads = 2, .sequences = 1, .prefix_cache = false};
  const std::unique_ptr<Model> alone = Model::Open(kPath, options).value();
  options.sequences = 5;
  options.prefix_cache = true;
  options.pass_seconds = 1e-3;  // prompts in many pieces
  const std::unique_ptr<Model> shared = Model::Open(kPath, options).value();
  Schedules schedules(*shared, *alone,
                      RequestsThatBeginAlike(rng, requests, context * 4 / 5, context / 6));
  for (std::size_t round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    schedules.Run(rng, 2 + rng.Below(12));
  }
  const PrefixCacheUse use = shared->metrics().prefix_cache;
  EXPECT_GT(use.hits, rounds);
  EXPECT_GE(use.cached_tokens, schedules.cached());
  EXPECT_GT(schedules.cached(), 0u);
  EXPECT_GT(use.given_up_tokens, 0u);
  EXPECT_LE(use.kept_tokens, use.most_tokens);
}

TEST(PrefixSharing, EveryRequestGetsItsBytesInAnySchedule) { RunSchedules(96, 60, TestCases(200)); }

TEST(PrefixSharing, SoDoRequestsOfSeveralPages) { RunSchedules(1024, 20, TestCases(200) / 10); }

}  // namespace
}  // namespace troupe
