#include "split/self_measure.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "api/model_access.h"
#include "api/tiny_model_for_test.h"
#include "base/mutex.h"
#include "split/own_costs.h"

namespace troupe {
namespace {

constexpr Nanos kMeasureSecond = 1'000'000'000;

// An engine, and a loop that does what was posted to it when the test says so.
class SelfMeasureTest : public testing::Test {
 protected:
  void TearDown() override { model_->Close(); }

  std::function<void()> TakePosted() {
    const MutexLock lock(mu_);
    if (posted_.empty()) return nullptr;
    std::function<void()> call = std::move(posted_.front());
    posted_.pop_front();
    return call;
  }
  // What comes until the measurement under way is over.
  void RunToRest() {
    for (int i = 0; measure_.is_under_way(); ++i) {
      ASSERT_LT(i, 30'000);
      if (const auto call = TakePosted()) {
        call();
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  BatchCounters Counters() const { return ModelAccess::CountersOf(*model_); }

  const std::unique_ptr<Model> model_ = OpenTiny({.sequences = 2});
  ManualClock clock_;
  Mutex mu_;
  std::deque<std::function<void()>> posted_ TROUPE_GUARDED_BY(mu_);
  OwnSource own_{*model_, clock_, [this](std::function<void()> call) {
                   const MutexLock lock(mu_);
                   posted_.push_back(std::move(call));
                 }};
  SelfMeasure measure_{*model_, clock_, own_, /*exact=*/true};
};

TEST_F(SelfMeasureTest, ReadsAShortAndALongTextBehindOneThatWarmsTheCacheAndTellsNothing) {
  measure_.OnIdle(/*is_known=*/false);
  EXPECT_TRUE(measure_.is_under_way());
  // Nothing is done here meanwhile: the second text cannot begin.
  for (int i = 0; Counters().finished < 1; ++i) {
    ASSERT_LT(i, 30'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(Counters().exact_speed.prompt.measured());
  EXPECT_FALSE(Counters().exact_speed.decode.measured());
  RunToRest();
  const BatchCounters after = Counters();
  const std::vector<std::size_t> prompts = PromptsToMeasureBy(model_->plan());
  ASSERT_EQ(prompts.size(), 3u);
  EXPECT_EQ(after.finished, 3u);
  EXPECT_EQ(after.prompt_tokens, prompts[0] + prompts[1] + prompts[2]);
  EXPECT_EQ(after.cached_tokens, 0u) << "no text is found in the prefix cache";
  EXPECT_EQ(after.generated_tokens, 3 * kMeasuredAnswer);
  EXPECT_TRUE(OwnCostsOf(after, model_->plan(), prompts[2], {.exact_only = true}));
}

TEST_F(SelfMeasureTest, MeasuresAgainOnceThatIsSomeMinutesOld) {
  measure_.OnIdle(false);
  RunToRest();
  clock_.Advance(SelfMeasure::kGoodFor - 1);
  measure_.OnIdle(true);
  EXPECT_FALSE(measure_.is_under_way());
  clock_.Advance(1);
  measure_.OnIdle(true);
  EXPECT_TRUE(measure_.is_under_way());
  RunToRest();
  EXPECT_EQ(Counters().finished, 6u);
  EXPECT_EQ(Counters().cached_tokens, 0u);
}

TEST_F(SelfMeasureTest, WhatAnswersHaveToldIsGoodForAsLong) {
  measure_.OnIdle(true);
  EXPECT_FALSE(measure_.is_under_way());
  clock_.Advance(SelfMeasure::kGoodFor);
  measure_.OnIdle(true);
  EXPECT_TRUE(measure_.is_under_way());
  RunToRest();
}

TEST_F(SelfMeasureTest, LeavesForWhoWantsTheEngineAndBeginsAnewSomeOtherTime) {
  measure_.OnIdle(false);
  measure_.Yield();
  EXPECT_FALSE(measure_.is_under_way());
  EXPECT_EQ(own_.runs(), 0u);
  EXPECT_TRUE(model_->Start(Ask("The kernel", 4))->Wait().ok());
  EXPECT_TRUE(Counters().speed.prompt.measured()) << "passes count again";
  clock_.Advance(kMeasureSecond);
  measure_.OnIdle(/*is_known=*/true);  // by that answer
  EXPECT_TRUE(measure_.is_under_way()) << "what was begun is not over";
  RunToRest();
  measure_.Close();
  clock_.Advance(SelfMeasure::kGoodFor);
  measure_.OnIdle(true);
  EXPECT_FALSE(measure_.is_under_way());
}

// The second text is through, which tells a line through zero.
TEST_F(SelfMeasureTest, AHalfOfAMeasurementIsNone) {
  measure_.OnIdle(false);
  for (int i = 0; Counters().finished < 2; ++i) {
    ASSERT_LT(i, 30'000);
    if (const auto call = TakePosted()) {
      call();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ASSERT_TRUE(measure_.is_under_way());
  measure_.Yield();
  EXPECT_TRUE(OwnCostsOf(Counters(), model_->plan(), 1, {.exact_only = true}));
  clock_.Advance(kMeasureSecond);
  measure_.OnIdle(true);
  EXPECT_TRUE(measure_.is_under_way());
  RunToRest();
  clock_.Advance(SelfMeasure::kGoodFor - 1);
  measure_.OnIdle(true);
  EXPECT_FALSE(measure_.is_under_way()) << "it was over then";
}

TEST_F(SelfMeasureTest, WhereSomebodyAlwaysComesItTriesEverLessOften) {
  measure_.OnIdle(false);
  measure_.Yield();
  for (const Nanos pause : {1, 2, 4, 8}) {
    clock_.Advance(pause * kMeasureSecond - 1);
    measure_.OnIdle(false);
    EXPECT_FALSE(measure_.is_under_way()) << "too soon before " << pause;
    clock_.Advance(1);
    measure_.OnIdle(false);
    EXPECT_TRUE(measure_.is_under_way()) << pause;
    measure_.Yield();
  }
}

TEST_F(SelfMeasureTest, WhatItTriesAgainItFindsInThePrefixCacheAndAddsNothingThere) {
  measure_.OnIdle(false);
  for (int i = 0; Counters().finished < 1; ++i) {  // the first text, behind which nothing is done
    ASSERT_LT(i, 30'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  measure_.Yield();
  clock_.Advance(kMeasureSecond);
  measure_.OnIdle(false);
  RunToRest();
  const std::uint64_t found = Counters().cached_tokens;
  EXPECT_EQ(found, PromptsToMeasureBy(model_->plan())[0] - 1) << "its last token is always read";
  clock_.Advance(SelfMeasure::kGoodFor);
  measure_.OnIdle(true);
  RunToRest();
  EXPECT_EQ(Counters().cached_tokens, found) << "a new measurement reads all";
}

TEST_F(SelfMeasureTest, TriesAgainAfterAFailureWithAGrowingPause) {
  model_->Close();
  int tries = 0;
  for (const Nanos pause : {0, 1, 2, 4}) {
    clock_.Advance(pause * kMeasureSecond - (pause > 0 ? 1 : 0));
    measure_.OnIdle(false);
    EXPECT_EQ(measure_.is_under_way(), pause == 0) << "too soon after " << tries << " tries";
    if (pause > 0) {
      clock_.Advance(1);
      measure_.OnIdle(false);
    }
    EXPECT_TRUE(measure_.is_under_way());
    RunToRest();
    ++tries;
  }
}

}  // namespace
}  // namespace troupe
