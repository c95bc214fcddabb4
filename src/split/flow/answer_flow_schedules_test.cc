// Answers over a link that fails, hangs and comes back at random, on a virtual clock: whatever
// happens, the tokens are those of the model alone, each once, and the answer ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "split/flow/answer_flow.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr Nanos kMillisecond = 1'000'000;

// Two places that choose the same tokens at their own pace, and a link between them.
class FlakyWorld {
 public:
  explicit FlakyWorld(Rng& rng, bool cloud_lies)
      : rng_(rng), cloud_lies_(cloud_lies), answer_(1 + rng.Below(120)) {
    for (TokenId& token : answer_) token = static_cast<TokenId>(rng.Below(50));
    pace_ = {kMillisecond * static_cast<Nanos>(5 + rng.Below(60)),
             kMillisecond * static_cast<Nanos>(1 + rng.Below(30))};
    read_ = {kMillisecond * static_cast<Nanos>(rng.Below(400)),
             kMillisecond * static_cast<Nanos>(rng.Below(200))};
    limits_.silence = kMillisecond * static_cast<Nanos>(50 + rng.Below(500));
    limits_.first_again = kMillisecond * static_cast<Nanos>(10 + rng.Below(300));
    limits_.patience = 1 + rng.Below(20);
    limits_.least_stall = kMillisecond * static_cast<Nanos>(20 + rng.Below(500));
    limits_.unmeasured_stall = 2 * limits_.least_stall;
  }

  void Run() {
    AnswerFlow flow(limits_);
    const Side first = rng_.Below(4) == 0 ? Side::kEnd : Side::kCloud;
    Do(flow, flow.Begin(first, View(), now_));
    while (!over_) {
      ASSERT_LT(now_, Nanos{600} * 1000 * kMillisecond) << "an answer that never ends";
      now_ += kMillisecond;
      ChangeLink();
      for (const RunId run : Due()) Speak(flow, run);
      if (!over_ && rng_.Below(20) == 0) Do(flow, flow.OnTime(View(), now_));
    }
    counts_ = flow.counts();
  }

  const std::vector<TokenId>& answer() const { return answer_; }
  const std::vector<TokenId>& shown() const { return shown_; }
  const FlowCounts& counts() const { return counts_; }
  const Status& failure() const { return failure_; }
  bool was_wrong() const { return was_wrong_; }

 private:
  enum class Link { kUp, kHangs, kCut };
  struct Running {
    Side place = Side::kEnd;
    std::size_t next = 0;
    Nanos speaks_at = 0;
  };

  CloudView View() {
    CloudView view{.usable = link_ == Link::kUp || rng_.Below(3) == 0, .better = std::nullopt};
    if (rng_.Below(3) != 0) view.better = rng_.Below(5) == 0 ? Side::kEnd : Side::kCloud;
    view.waits = rng_.Below(4) == 0;
    if (rng_.Below(4) > 0) view.next_token_in = kMillisecond * static_cast<Nanos>(rng_.Below(100));
    view.has_room = rng_.Below(4) > 0;
    return view;
  }

  void ChangeLink() {
    if (now_ < link_until_) return;
    link_ = static_cast<Link>(rng_.Below(3));
    link_until_ = now_ + kMillisecond * static_cast<Nanos>(1 + rng_.Below(700));
  }

  std::vector<RunId> Due() const {
    std::vector<RunId> due;
    for (const auto& [id, run] : runs_) {
      if (run.speaks_at <= now_) due.push_back(id);
    }
    return due;
  }

  void Speak(AnswerFlow& flow, RunId id) {
    const auto found = runs_.find(id);
    if (found == runs_.end() || over_) return;  // stopped by one that spoke before
    Running& run = found->second;
    if (run.place == Side::kCloud && link_ == Link::kHangs) return;
    if (run.place == Side::kCloud && link_ == Link::kCut) {
      runs_.erase(found);
      return Do(flow, flow.OnFailure(id, Error(Code::kUnavailable, "the link is cut"), now_));
    }
    const std::size_t i = static_cast<std::size_t>(run.place);
    run.speaks_at = now_ + pace_[i];
    if (run.next == answer_.size()) {
      runs_.erase(found);
      return Do(flow, flow.OnEnd(id, FinishReason::kEndToken, now_));
    }
    if (rng_.Below(10) == 0) return Do(flow, flow.OnHeard(id, now_));
    std::vector<TokenId> tokens;
    const std::size_t most = 1 + rng_.Below(3);
    while (tokens.size() < most && run.next < answer_.size()) tokens.push_back(answer_[run.next++]);
    if (cloud_lies_ && run.place == Side::kCloud && rng_.Below(5) == 0) tokens.back() += 1000;
    Do(flow, flow.OnTokens(id, tokens, now_));
  }

  void Do(AnswerFlow& flow, const FlowStep& step) {
    ASSERT_FALSE(over_);
    shown_.insert(shown_.end(), step.tokens.begin(), step.tokens.end());
    ASSERT_EQ(shown_, flow.tokens());
    for (const RunId run : step.stop) ASSERT_EQ(runs_.erase(run), 1u) << "stopped twice";
    for (const FlowStep::Start& start : step.start) {
      const std::size_t i = static_cast<std::size_t>(start.place);
      runs_[start.run] = {
          .place = start.place, .next = shown_.size(), .speaks_at = now_ + read_[i] + pace_[i]};
    }
    was_wrong_ = was_wrong_ || step.cloud_is_wrong;
    failure_ = step.failure;
    over_ = step.finish.has_value() || !step.failure.ok();
    ASSERT_EQ(runs_.empty(), over_) << "who chooses the next token?";
    std::size_t at_end = 0, in_cloud = 0;
    for (const auto& [id, run] : runs_) ++(run.place == Side::kEnd ? at_end : in_cloud);
    ASSERT_LE(at_end, 1u);
    ASSERT_LE(in_cloud, 1u);
  }

  Rng& rng_;
  const bool cloud_lies_;
  std::vector<TokenId> answer_, shown_;
  std::array<Nanos, 2> pace_, read_;
  FlowLimits limits_;
  std::map<RunId, Running> runs_;
  Nanos now_ = 0, link_until_ = 0;
  Link link_ = Link::kUp;
  bool over_ = false, was_wrong_ = false;
  Status failure_;
  FlowCounts counts_;
};

TEST(AnswerFlowSchedules, GiveTheTokensOfTheModelAloneWhateverHappensToTheLink) {
  Rng rng(TestSeed());
  FlowCounts sum;
  for (int schedule = 0; schedule < 2000; ++schedule) {
    FlakyWorld world(rng, /*cloud_lies=*/false);
    world.Run();
    if (HasFatalFailure()) FAIL() << "schedule " << schedule;
    ASSERT_TRUE(world.failure().ok()) << world.failure().message();
    ASSERT_EQ(world.shown(), world.answer()) << "schedule " << schedule;
    ASSERT_FALSE(world.was_wrong());
    sum += world.counts();
  }
  // Every way of going on has happened, and often.
  EXPECT_GT(sum.tokens[0], 10'000u);
  EXPECT_GT(sum.tokens[1], 10'000u);
  EXPECT_GT(sum.taken_over[0], 500u);
  EXPECT_GT(sum.taken_over[1], 500u);
  EXPECT_GT(sum.failures, 500u);
  EXPECT_GT(sum.silences, 100u);
  EXPECT_GT(sum.unused[0], 100u);
  EXPECT_GT(sum.unused[1], 100u);
}

// What a liar says first cannot be told from the truth; once both have spoken it is, and an answer
// that has a wrong token does not end as a good one.
TEST(AnswerFlowSchedules, NoLieIsTakenForTheTruthOnceTheEndHasSaidTheSameToken) {
  Rng rng(TestSeed());
  std::size_t caught = 0, failed = 0;
  for (int schedule = 0; schedule < 500; ++schedule) {
    FlakyWorld world(rng, /*cloud_lies=*/true);
    world.Run();
    if (HasFatalFailure()) FAIL() << "schedule " << schedule;
    caught += world.was_wrong();
    failed += !world.failure().ok();
    if (!world.was_wrong()) {
      EXPECT_TRUE(world.failure().ok());
    }
  }
  EXPECT_GT(caught, 20u);
  EXPECT_GT(failed, 5u);
}

}  // namespace
}  // namespace troupe
