#include "runtime/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "runtime/fake_runner_for_test.h"
#include "testing/no_more_threads.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBatcherVocabulary = 256;

// A door that the engine's thread stands before, in a sink, until the test opens it.
class Door {
 public:
  void Pass() {
    std::unique_lock lock(mu_);
    ++standing_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void WaitForSomebody() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return standing_ > 0; });
  }
  void Open() {
    const std::lock_guard lock(mu_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int standing_ = 0;
  bool open_ = false;
};

class BatcherTest : public testing::Test {
 protected:
  BatcherTest() : tokenizer_(MakeTokenizer(TinyByteLevelVocab()).value()) {}

  static BatchRequest Request(std::uint64_t seed, std::size_t tokens = 20) {
    BatchRequest request{.prompt = {1, 2, 3}, .options = {.max_tokens = tokens}};
    request.options.sampler.seed = seed;
    return request;
  }
  // Holds the engine's thread at its first token.
  static BatchRequest Holding(Door& door, std::size_t tokens = 20) {
    BatchRequest request = Request(0, tokens);
    request.sinks.on_logits = [&door](TokenId, std::span<const float>) {
      door.Pass();
      return OkStatus();
    };
    return request;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  MonotonicClock clock_;
};

TEST_F(BatcherTest, TellsErrandsHowManyRowsThereIsTimeForBesideAnswers) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  Door door;
  const auto batcher =
      Batcher::Create(runner, *tokenizer_, clock_, {.limits = {.least_chunk = 5}}).value();
  const auto rows_between = [&](std::promise<std::uint32_t>& rows) {
    batcher->Between([&] {
      const auto an_hour_each = [](std::uint32_t some) { return 3600.0 * some; };
      rows.set_value(batcher->RowsBetween(an_hour_each, 400));
    });
  };
  std::promise<std::uint32_t> alone;
  rows_between(alone);
  EXPECT_EQ(alone.get_future().get(), 400u);
  const auto ticket = batcher->Submit(Holding(door)).value();
  door.WaitForSomebody();
  std::promise<std::uint32_t> beside;
  rows_between(beside);
  door.Open();
  EXPECT_EQ(beside.get_future().get(), 10u) << "twice the least chunk";
  EXPECT_TRUE(ticket->Wait().ok());
}

TEST_F(BatcherTest, WhatAnErrandAsksForThatTookLongIsDoneAfterThePass) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  Door door;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  const auto ticket = batcher->Submit(Holding(door)).value();
  door.WaitForSomebody();
  std::vector<std::size_t> passes;  // that had been run at each errand
  std::promise<void> both;
  batcher->Between([&] {
    passes.push_back(runner.passes());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    batcher->Between([&] {
      passes.push_back(runner.passes());
      both.set_value();
    });
  });
  door.Open();
  both.get_future().wait();
  EXPECT_TRUE(ticket->Wait().ok());
  EXPECT_EQ(passes[1], passes[0] + 1);
}

TEST_F(BatcherTest, WhatErrandsAskForIsDoneBeforeTheSamePassButPassesComeAllTheSame) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  Door door;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  const auto ticket = batcher->Submit(Holding(door)).value();
  door.WaitForSomebody();
  std::vector<std::size_t> passes;  // that had been run at each errand
  std::promise<void> all;
  std::function<void()> again = [&] {
    passes.push_back(runner.passes());
    passes.size() < 9 ? batcher->Between(again) : all.set_value();
  };
  batcher->Between(again);
  door.Open();
  all.get_future().wait();
  EXPECT_TRUE(ticket->Wait().ok());
  EXPECT_EQ(passes[0], passes[3]);
  EXPECT_EQ(passes[4], passes[3] + 1);
  EXPECT_EQ(passes[8], passes[3] + 2);
}

TEST_F(BatcherTest, AnswersRequestsOfSeveralThreadsAsItAnswersOne) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  std::vector<std::string> alone;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    alone.push_back(batcher->Submit(Request(seed)).value()->Wait()->text);
  }
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (int again = 0; again < 8; ++again) {
        equal += batcher->Submit(Request(seed)).value()->Wait()->text == alone[seed] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 32);
  EXPECT_EQ(batcher->counters().finished, 36u);
}

TEST_F(BatcherTest, RefusesMoreThanTheQueueHoldsAndSaysWhenToComeAgain) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 1, .context = 512}});
  Door door;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {.queue = 1}).value();
  const auto first = batcher->Submit(Holding(door)).value();
  door.WaitForSomebody();
  const auto second = batcher->Submit(Request(1)).value();
  const Status third = batcher->Submit(Request(2)).status();
  EXPECT_EQ(third.code(), Code::kUnavailable);
  EXPECT_GT(third.retry_after(), 0);
  door.Open();
  EXPECT_TRUE(second->Wait().ok());
  // Its place is free before its answer is there.
  EXPECT_TRUE(batcher->Submit(Request(2)).value()->Wait().ok());
}

TEST_F(BatcherTest, TheQueueCanBecomeLongerAndShorterWhileRequestsWait) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 1, .context = 512}});
  Door door;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {.queue = 0}).value();
  const auto first = batcher->Submit(Holding(door)).value();
  door.WaitForSomebody();
  EXPECT_EQ(batcher->Submit(Request(1)).status().code(), Code::kUnavailable);
  batcher->SetLimits(/*queue=*/2, /*target_seconds=*/0.2);
  EXPECT_EQ(batcher->most_requests(), 3u);
  const auto second = batcher->Submit(Request(1)).value();
  const auto third = batcher->Submit(Request(2)).value();
  batcher->SetLimits(/*queue=*/0, /*target_seconds=*/0.2);
  EXPECT_EQ(batcher->Submit(Request(3)).status().code(), Code::kUnavailable);
  door.Open();
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_TRUE(third->Wait().ok());
  EXPECT_TRUE(batcher->Submit(Request(3)).value()->Wait().ok());
}

TEST_F(BatcherTest, PassesThatAreNotLikeOthersTellNothingOfWhatPassesTake) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  batcher->WeighPasses(0);
  EXPECT_TRUE(batcher->Submit(Request(1)).value()->Wait().ok());
  EXPECT_FALSE(batcher->counters().speed.prompt.measured());
  batcher->WeighPasses(kUsualPassShare);
  EXPECT_TRUE(batcher->Submit(Request(1)).value()->Wait().ok());
  EXPECT_TRUE(batcher->counters().speed.prompt.measured());
}

TEST_F(BatcherTest, ARequestWaitsInTheQueueFromTheMomentItWasSubmitted) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  Door door;
  ManualClock clock;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock, {}).value();
  const auto first = batcher->Submit(Holding(door)).value();
  door.WaitForSomebody();
  const auto second = batcher->Submit(Request(1)).value();
  EXPECT_EQ(batcher->counters().waiting, 2u) << "one before its first pass, one in it";
  clock.Advance(3'000'000'000);  // nobody asks it: the engine's thread stands before the door
  door.Open();
  EXPECT_EQ(second->Wait()->usage.queue_seconds, 3);
  EXPECT_EQ(first->Wait()->usage.queue_seconds, 0);
  EXPECT_EQ(batcher->counters().waiting, 0u);
}

TEST_F(BatcherTest, TokensOfPromptsThatCameDuringAPassAreToBeReadToo) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  Door door;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, BatcherOptions{}).value();
  const auto first = batcher->Submit(Holding(door)).value();
  door.WaitForSomebody();
  EXPECT_EQ(batcher->counters().to_read, 3u) << "its pass has not ended";
  const auto second = batcher->Submit(Request(1)).value();
  EXPECT_EQ(batcher->counters().to_read, 6u);
  door.Open();
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_EQ(batcher->counters().to_read, 0u);
}

TEST_F(BatcherTest, TellsItsStateOnlyWhereSomebodyAsks) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  EXPECT_TRUE(batcher->Submit(Request(1)).value()->Wait().ok());
  EXPECT_EQ(runner.looks(), 0u);
  constexpr Nanos kMinute = 60'000'000'000;
  const auto idle = batcher->State(kMinute);
  EXPECT_EQ(idle->experts.experts, 2u) << "without a request there is no pass to wait for";
  EXPECT_TRUE(idle->requests.empty());
  EXPECT_TRUE(batcher->Submit(Request(1)).value()->Wait().ok());
  EXPECT_EQ(runner.looks(), 1u);
  batcher->Close();
  EXPECT_EQ(batcher->State(kMinute), idle) << "closed: as it was known last";
  EXPECT_EQ(runner.looks(), 1u);
}

TEST_F(BatcherTest, AStateWaitsForThePassUnderWayButNoLongerThanItMay) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  Door door;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  const auto held = batcher->Submit(Holding(door)).value();
  door.WaitForSomebody();
  EXPECT_TRUE(batcher->State(1'000'000)->requests.empty()) << "none is known yet";
  auto later = std::async(std::launch::async, [&] { return batcher->State(60'000'000'000); });
  door.Open();
  const auto state = later.get();
  EXPECT_TRUE(held->Wait().ok());
  EXPECT_GT(runner.looks(), 0u);
  for (const RequestState& request : state->requests) {
    EXPECT_EQ(request.id, held->id());
    EXPECT_EQ(request.prompt_read, 3u);
  }
}

TEST_F(BatcherTest, ASinkGetsTheStateThatIsKnownAlready) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  BatchRequest request = Request(1);
  std::atomic<int> asked = 0;
  request.sinks.on_text = [&](std::string_view) {
    asked += batcher->State(60'000'000'000)->requests.empty() ? 1 : 0;
    return true;
  };
  EXPECT_TRUE(batcher->Submit(std::move(request)).value()->Wait().ok());
  EXPECT_GT(asked, 0);
  EXPECT_EQ(runner.looks(), 0u);
}

TEST_F(BatcherTest, RefusesAtOnceWhatItCanNeverServe) {
  FakeRunner runner({});
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  EXPECT_EQ(batcher->Submit({.prompt = {}, .options = {}}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(
      batcher->Submit({.prompt = std::vector<TokenId>(600, 1), .options = {}}).status().code(),
      Code::kResourceExhausted);
}

TEST_F(BatcherTest, CancellingTwiceAndAfterTheEndChangesNothing) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  Door door;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  const auto ticket = batcher->Submit(Holding(door, 400)).value();
  door.WaitForSomebody();
  ticket->Cancel();
  ticket->Cancel();
  door.Open();
  const Answer result = ticket->Wait().value();
  EXPECT_EQ(result.finish, FinishReason::kCancelled);
  EXPECT_EQ(result.tokens.size(), 1u);
  ticket->Cancel();
  EXPECT_EQ(ticket->Wait()->text, result.text);
}

TEST_F(BatcherTest, RequestsAreNumberedByTheRunnerWhichMayHaveOthers) {
  FakeRunner runner({});
  const std::unique_ptr<Batcher> batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  const RequestId others = runner.NewRequest();
  const auto ticket = batcher->Submit(Request(1)).value();
  EXPECT_EQ(ticket->id(), others + 1);
  EXPECT_TRUE(ticket->Wait().ok());
}

TEST_F(BatcherTest, DestroyedWhileRunningItEndsRunningWaitingAndNewRequests) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 1, .context = 512}});
  std::vector<std::shared_ptr<Ticket>> tickets;
  {
    Door door;
    const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
    tickets.push_back(batcher->Submit(Holding(door, 500)).value());
    door.WaitForSomebody();
    for (int i = 0; i < 5; ++i) tickets.push_back(batcher->Submit(Request(1, 500)).value());
    door.Open();
  }
  for (const auto& ticket : tickets) {
    EXPECT_TRUE(ticket->done());
    EXPECT_EQ(ticket->Wait().status().code(), Code::kCancelled);
    EXPECT_THAT(ticket->Wait().status().message(), HasSubstr("closed"));
    ticket->Cancel();
  }
}

TEST_F(BatcherTest, ClosedItEndsWhatItHasAndRefusesWhatComes) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 1, .context = 512}});
  Door door;
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  const auto running = batcher->Submit(Holding(door, 500)).value();
  const auto waiting = batcher->Submit(Request(1)).value();
  door.WaitForSomebody();
  std::vector<std::thread> closers;
  for (int i = 0; i < 3; ++i) closers.emplace_back([&] { batcher->Close(); });
  Status refused;
  while (refused.code() != Code::kFailedPrecondition)
    refused = batcher->Submit(Request(2)).status();
  EXPECT_THAT(refused.message(), HasSubstr("closed"));
  EXPECT_FALSE(running->done());
  door.Open();
  for (std::thread& closer : closers) closer.join();
  for (const auto& ticket : {running, waiting}) {
    ASSERT_TRUE(ticket->done());
    EXPECT_EQ(ticket->Wait().status().code(), Code::kCancelled);
  }
  batcher->Close();
  EXPECT_EQ(batcher->Submit(Request(2)).status().code(), Code::kFailedPrecondition);
}

TEST_F(BatcherTest, EveryRequestThatRacesWithClosingIsRefusedOrEnds) {
  for (int round = 0; round < 50; ++round) {
    FakeRunner runner({.vocabulary = kBatcherVocabulary});
    const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      threads.emplace_back([&, seed] {
        for (;;) {
          const auto ticket = batcher->Submit(Request(seed, 3));
          if (!ticket.ok()) {
            EXPECT_EQ(ticket.status().code(), Code::kFailedPrecondition);
            return;
          }
          const auto answer = (*ticket)->Wait();
          EXPECT_TRUE(answer.ok() || answer.status().code() == Code::kCancelled);
        }
      });
    }
    batcher->Close();
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(BatcherTest, ClosedByASinkItIsLetGoByTheEnginesThreadWithoutAnother) {
  struct Owner {
    explicit Owner(std::promise<std::thread::id> let_go) : told(std::move(let_go)) {}
    ~Owner() {
      batcher.reset();
      told.set_value(std::this_thread::get_id());
    }
    FakeRunner runner{{.vocabulary = kBatcherVocabulary}};
    std::promise<std::thread::id> told;
    std::unique_ptr<Batcher> batcher;
  };
  std::promise<std::thread::id> let_go;
  std::future<std::thread::id> thread = let_go.get_future();
  auto owner = std::make_shared<Owner>(std::move(let_go));
  owner->batcher = Batcher::Create(owner->runner, *tokenizer_, clock_, {}).value();
  std::thread::id engine;
  BatchRequest request = Request(1, 400);
  request.sinks.on_text = [&](std::string_view) {
    if (owner == nullptr) return true;
    engine = std::this_thread::get_id();
    const NoMoreThreads none;
    Batcher& batcher = *owner->batcher;
    batcher.Close();  // returns: it would wait for itself
    batcher.CloseLater(std::move(owner));
    EXPECT_EQ(batcher.Submit(Request(2)).status().code(), Code::kFailedPrecondition);
    return true;
  };
  const auto ticket = owner->batcher->Submit(std::move(request)).value();
  EXPECT_EQ(ticket->Wait().status().code(), Code::kCancelled);
  EXPECT_EQ(thread.get(), engine);
}

TEST_F(BatcherTest, WithoutAThreadThereIsNone) {
  FakeRunner runner({});
  const NoMoreThreads none;
  const Status status = Batcher::Create(runner, *tokenizer_, clock_, {}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("no thread for the engine"));
}

TEST_F(BatcherTest, WaitingOnTheEnginesThreadIsRefused) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary});
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  BatchRequest request = Request(3);
  Code code = Code::kOk;
  request.sinks.on_text = [&](std::string_view) {
    code = batcher->Submit(Request(4)).value()->Wait().status().code();
    return false;
  };
  EXPECT_EQ(batcher->Submit(std::move(request)).value()->Wait()->finish, FinishReason::kCancelled);
  EXPECT_EQ(code, Code::kFailedPrecondition);
}

TEST_F(BatcherTest, AFailedRequestLeavesTheEngineServing) {
  FakeRunner runner({.vocabulary = kBatcherVocabulary, .fails = [](std::span<const PassRows> rows) {
                       return std::ranges::count(rows, RequestId{1001}, &PassRows::request) > 0;
                     }});
  const auto batcher = Batcher::Create(runner, *tokenizer_, clock_, {}).value();
  EXPECT_EQ(batcher->Submit(Request(1)).value()->Wait().status().code(), Code::kDataLoss);
  EXPECT_TRUE(batcher->Submit(Request(1)).value()->Wait().ok());
}

}  // namespace
}  // namespace troupe
