#include "split/own_source.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "api/model_access.h"
#include "api/tiny_model_for_test.h"
#include "base/mutex.h"

namespace troupe {
namespace {

// An engine whose passes are shorter than a long prompt, and a loop that does what was posted to it
// when the test says so.
class OwnSourceTest : public testing::Test {
 protected:
  void TearDown() override { model_->Close(); }

  static RunAsk Of(std::size_t tokens, std::size_t kept) {
    Request request{.max_tokens = 1};
    std::vector<TokenId> prompt(tokens);
    for (std::size_t i = 0; i < tokens; ++i) prompt[i] = static_cast<TokenId>(10 + i % 97);
    request.prompt = std::move(prompt);
    request.ignore_end = true;
    return {.request = std::move(request), .kept = kept};
  }
  // Starts it. is_over_ says when it has ended.
  TokenSource::Stop Start(const RunAsk& ask) {
    is_over_ = false;
    return own_.Start(ask, {.on_heard = [] {},
                            .on_read =
                                [this](std::size_t read, std::size_t all) {
                                  EXPECT_EQ(own_.tokens_to_read(), all - read);
                                  read_.push_back(read);
                                },
                            .on_tokens =
                                [this](std::span<const TokenId>) {
                                  if (on_token_) on_token_();
                                },
                            .on_end = [this](FinishReason, const Usage&) { is_over_ = true; },
                            .on_failure =
                                [this](const Status& why) {
                                  ADD_FAILURE() << why.message();
                                  is_over_ = true;
                                }});
  }
  bool DoPosted() {
    std::function<void()> call;
    {
      const MutexLock lock(mu_);
      if (posted_.empty()) return false;
      call = std::move(posted_.front());
      posted_.pop_front();
    }
    call();
    return true;
  }
  void RunToEnd() {
    for (int i = 0; !is_over_; ++i) {
      ASSERT_LT(i, 30'000);
      if (!DoPosted()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Then no more is posted.
  void WaitForEndOfOne() {
    const auto ended = [this] {
      const BatchCounters counters = ModelAccess::CountersOf(*model_);
      return counters.finished + counters.cancelled;
    };
    for (int i = 0; ended() == 0; ++i) {
      ASSERT_LT(i, 30'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    model_->Close();
  }

  const std::unique_ptr<Model> model_ =
      Model::Open(kPath, {.context = 2048, .threads = 2, .sequences = 1}).value();
  MonotonicClock clock_;
  Mutex mu_;
  std::deque<std::function<void()>> posted_ TROUPE_GUARDED_BY(mu_);
  int lost_ = 0;
  std::vector<std::size_t> read_;
  std::function<void()> on_token_;
  bool is_over_ = false;
  OwnSource own_{*model_, clock_,
                 [this](std::function<void()> call) {
                   const MutexLock lock(mu_);
                   posted_.push_back(std::move(call));
                 },
                 [this] { ++lost_; }};
};

TEST_F(OwnSourceTest, ARunThatFindsNothingOfWhatIsBelievedToBeKeptHasAllOfItToRead) {
  ASSERT_LT(model_->plan().pass_rows, 1500u);
  (void)Start(Of(1600, 1584));
  EXPECT_EQ(own_.tokens_to_read(), 16u) << "as is believed";
  RunToEnd();
  ASSERT_GT(read_.size(), 1u) << "each of these was as many as are left to be read";
  EXPECT_EQ(lost_, 1) << "it is told once";
  EXPECT_EQ(own_.tokens_to_read(), 0u);
}

TEST_F(OwnSourceTest, ARunThatFindsItSaysNothing) {
  (void)Start(Of(1600, 0));
  RunToEnd();
  read_.clear();
  (void)Start(Of(1600, 1584));
  RunToEnd();
  EXPECT_EQ(lost_, 0);
  EXPECT_GE(read_.front(), 1584u);
}

TEST_F(OwnSourceTest, WhereAPassReadsAsManyItIsKnownAtTheEnd) {
  (void)Start(Of(100, 80));
  RunToEnd();
  EXPECT_EQ(lost_, 1);
}

TEST_F(OwnSourceTest, ItIsKnownThoughItWasStoppedWithAllOfItsTokens) {
  const TokenSource::Stop stop = Start(Of(100, 80));
  on_token_ = stop;
  WaitForEndOfOne();
  while (DoPosted()) continue;
  EXPECT_FALSE(is_over_) << "it was stopped";
  EXPECT_EQ(lost_, 1);
}

TEST_F(OwnSourceTest, OneThatWasStoppedBeforeItBeganHasLookedForNothing) {
  std::promise<void> goes_on;
  ModelAccess::Between(*model_, [until = goes_on.get_future().share()] { until.wait(); });
  Start(Of(100, 80))();
  goes_on.set_value();
  WaitForEndOfOne();
  while (DoPosted()) continue;
  EXPECT_EQ(lost_, 0);
}

}  // namespace
}  // namespace troupe
