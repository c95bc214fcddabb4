// Cut prompts on a small engine whose thread is the test: passes are run when it says so.
#include "runtime/part_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <utility>

#include "base/rng.h"
#include "runtime/session.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kCutModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

class PartLaneTest : public testing::Test {
 protected:
  void Open(std::size_t positions = 64, std::optional<std::uint32_t> slots = std::nullopt) {
    EngineOptions options{.threads = 2, .context = 64, .sequences = 2, .chunk = 12};
    options.offload.slots = slots;
    engine_ = Engine::Open(kCutModel, options).value();
    below_ = NewLane({0, 5}, positions);
    above_ = NewLane({3, 8}, positions);
  }
  std::unique_ptr<PartLane> NewLane(LayerRange layers, std::size_t positions) {
    PassGaps gaps{
        .between = [this](std::function<void()> errand) { errands_.push_back(std::move(errand)); },
        .rows =
            [this](const RowSeconds& seconds, std::uint32_t most) {
              a_row_takes_ = seconds(1);
              return std::min(most, most_rows_);
            }};
    return std::make_unique<PartLane>(
        PartRunner::Create(*engine_, {.layers = layers, .positions = positions}).value(),
        std::move(gaps), clock_);
  }
  void RunErrands() {
    for (; !errands_.empty(); errands_.pop_front()) errands_.front()();
  }
  std::vector<TokenId> Text(std::size_t count) {
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) token = static_cast<TokenId>(rng_.Below(200));
    return tokens;
  }
  std::vector<float> Whole(const std::vector<TokenId>& text) {
    Session session = Session::Create(*engine_).value();
    EXPECT_TRUE(session.FeedPrompt(text).ok());
    return {session.logits().begin(), session.logits().end()};
  }

  // Something happens in the middle of a pass: it looks at the clock when it begins. A pass takes a
  // millisecond, as nothing else is looked at.
  class ClockThatCalls final : public Clock {
   public:
    Nanos Now() const override {
      if (const auto call = std::exchange(on_look_, nullptr); call) call();
      return now_ += 1'000'000;
    }
    void OnLook(std::function<void()> call) { on_look_ = std::move(call); }

   private:
    mutable std::function<void()> on_look_;
    mutable Nanos now_ = 0;
  };

  std::unique_ptr<Engine> engine_;
  ClockThatCalls clock_;
  std::deque<std::function<void()>> errands_;
  std::unique_ptr<PartLane> below_, above_;
  std::uint32_t most_rows_ = 1000;  // of a pass, beside answers
  double a_row_takes_ = 0;          // as the lane has said when it was about to run a pass
  Rng rng_{TestSeed()};
};

TEST_F(PartLaneTest, ACutPromptHasTheLogitsOfTheWholeInAnyPiecesAlsoWhereExpertsAreLoaded) {
  for (const std::optional<std::uint32_t> slots : {std::optional<std::uint32_t>(), {40}}) {
    Open(64, slots);
    for (const std::uint32_t layer : {3U, 5U}) {
      for (const std::size_t piece : {1U, 7U, 12U, 40U}) {
        const std::vector<TokenId> text = Text(40);
        const auto lower = below_->Open({0, layer}, text.size()).value();
        const auto upper = above_->Open({layer, 8}, text.size()).value();
        std::vector<float> logits;
        for (std::size_t at = 0; at < text.size(); at += piece) {
          const std::size_t count = std::min(piece, text.size() - at);
          const auto first = text.begin() + static_cast<std::ptrdiff_t>(at);
          std::vector<float> rows;
          below_->Run(lower,
                      {.tokens = {first, first + static_cast<std::ptrdiff_t>(count)},
                       .wanted = PartLane::Wanted::kRows},
                      [&](const PartLane::Outcome& outcome) {
                        ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
                        rows = outcome.rows;
                      });
          RunErrands();
          ASSERT_EQ(rows.size(), count * engine_->config().width);
          const bool is_last = at + count == text.size();
          above_->Run(upper,
                      {.stream = rows,
                       .wanted = is_last ? PartLane::Wanted::kLogits : PartLane::Wanted::kNothing},
                      [&](const PartLane::Outcome& outcome) {
                        ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
                        EXPECT_TRUE(outcome.rows.empty()) << "nobody asks for them";
                        logits.assign(outcome.logits.begin(), outcome.logits.end());
                      });
          RunErrands();
        }
        EXPECT_EQ(logits, Whole(text)) << layer << ", " << piece;
      }
    }
    below_.reset();
    above_.reset();
    errands_.clear();
  }
}

TEST_F(PartLaneTest, PromptsThatGoThroughTheSameLayersShareAPassAndOthersHaveTheNext) {
  Open(/*positions=*/192);  // a page each
  int done = 0;
  const auto count = [&](const PartLane::Outcome& outcome) { done += outcome.status.ok() ? 1 : 0; };
  const auto first = below_->Open({0, 3}, 4).value(), second = below_->Open({0, 5}, 4).value(),
             third = below_->Open({0, 3}, 4).value();
  for (const auto& prompt : {first, second, third}) {
    below_->Run(prompt, {.tokens = Text(4)}, count);
  }
  EXPECT_EQ(below_->counters().waiting_rows, 12u);
  ASSERT_EQ(errands_.size(), 1u);
  errands_.front()();
  errands_.pop_front();
  EXPECT_EQ(done, 2);
  RunErrands();
  EXPECT_EQ(done, 3);
  const PartCounters counters = below_->counters();
  EXPECT_EQ(counters.passes, 2u);
  EXPECT_EQ(counters.rows, 12u);
  EXPECT_EQ(counters.prompts, 3u);
  EXPECT_EQ(counters.waiting_rows, 0u);
}

TEST_F(PartLaneTest, APassHasNoMoreRowsThanAnswersUnderWayLeaveAndThoseHearWhatRowsTake) {
  Open();
  most_rows_ = 3;
  const auto prompt = below_->Open({0, 5}, 10).value();
  std::size_t rows = 0;
  double seconds = 0, waited = 0;
  below_->Run(prompt, {.tokens = Text(10), .wanted = PartLane::Wanted::kRows},
              [&](const PartLane::Outcome& outcome) {
                ASSERT_TRUE(outcome.status.ok());
                rows = outcome.rows.size() / engine_->config().width;
                seconds = outcome.seconds;
                waited = outcome.waited_seconds;
              });
  RunErrands();
  EXPECT_EQ(rows, 10u);
  EXPECT_EQ(below_->counters().passes, 4u);
  EXPECT_NEAR(seconds, 4e-3, 1e-9) << "four passes";
  EXPECT_GT(waited, 2e-3) << "and what was between them, as the clock has it";
  EXPECT_NEAR(a_row_takes_, 1e-3 / 3, 1e-9) << "a third of a pass of three";
}

TEST_F(PartLaneTest, KeysAreStoredAndTakenOutAsFarAsThereIsTimeAndRowsGoOnBeside) {
  Open();
  const auto lane = NewLane({0, 8}, 64);
  const auto prompt = lane->Open({3, 8}, 32).value();
  const std::size_t bytes = KeysBytes(lane->pool(), {.layers = {0, 1}, .positions = 16});
  int stored = 0;
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    KeysPart part{.range = {.layers = {layer, layer + 1}, .positions = 16},
                  .bytes = std::vector<std::byte>(bytes)};
    lane->Store(prompt, std::move(part),
                [&](const PartLane::Outcome& outcome) { stored += outcome.status.ok() ? 1 : 0; });
  }
  std::size_t rows = 0;
  lane->Run(prompt,
            {.stream = std::vector<float>(2 * engine_->config().width),
             .wanted = PartLane::Wanted::kRows},
            [&](const PartLane::Outcome& outcome) { rows = outcome.rows.size(); });
  const auto run_errand = [this] {
    ASSERT_FALSE(errands_.empty());
    const auto errand = std::move(errands_.front());
    errands_.pop_front();
    errand();
  };
  a_row_takes_ = -1;
  most_rows_ = 0;
  run_errand();
  EXPECT_EQ(stored, 1) << "one at least";
  EXPECT_EQ(rows, 0u) << "one of two";
  run_errand();
  EXPECT_EQ(stored, 2);
  EXPECT_GT(rows, 0u) << "rows go on beside";
  std::vector<std::size_t> asked;
  bool is_over = false;
  lane->TakeOut(
      prompt,
      [&](std::size_t positions) {
        asked.push_back(positions);
        return PartLane::Taken{.positions = 16, .more = asked.size() < 3};
      },
      [&](const PartLane::Outcome& outcome) { is_over = outcome.status.ok(); });
  run_errand();
  EXPECT_EQ(stored, 3) << "one at least";
  EXPECT_EQ(asked.size(), 1u) << "one at least";
  EXPECT_LT(asked.front(), 16u);
  EXPECT_FALSE(is_over);
  run_errand();
  run_errand();
  EXPECT_TRUE(is_over);
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_EQ(lane->counters().moves, 5u);
  EXPECT_TRUE(errands_.empty());
}

TEST_F(PartLaneTest, RowsHaveTheTimeThatMovesHaveLeft) {
  Open();
  const auto lane = NewLane({0, 8}, 64);
  const auto prompt = lane->Open({3, 8}, 64).value();
  const std::vector<float> stream(12 * engine_->config().width);
  int run = 0;
  const auto count = [&](const PartLane::Outcome&) { ++run; };
  lane->Run(prompt, {.stream = stream}, count);
  RunErrands();
  EXPECT_EQ(lane->counters().passes, 1u) << "12 rows in a millisecond";
  const std::size_t bytes = KeysBytes(lane->pool(), {.layers = {0, 1}, .positions = 16});
  lane->Store(
      prompt,
      {.range = {.layers = {0, 1}, .positions = 16}, .bytes = std::vector<std::byte>(bytes)},
      count);
  lane->Run(prompt, {.stream = stream}, count);
  errands_.front()();
  errands_.pop_front();
  EXPECT_EQ(lane->counters().rows, 13u) << "storing has taken all of a pass, and one row is left";
  RunErrands();
  EXPECT_EQ(run, 3);
}

TEST_F(PartLaneTest, WhoWantsNothingTakenOutAnyMoreHoldsUpNobody) {
  Open();
  const auto prompt = below_->Open({0, 3}, 16).value();
  int ended = 0;
  const auto count = [&](const PartLane::Outcome&) { ++ended; };
  for (int i = 0; i < 3; ++i) {
    below_->TakeOut(
        prompt, [](std::size_t) { return PartLane::Taken(); }, count);
  }
  errands_.front()();
  EXPECT_EQ(ended, 3);
}

TEST_F(PartLaneTest, WhatIsTakenOutWhileTheLaneIsClosedIsToldSo) {
  Open();
  const auto prompt = below_->Open({0, 3}, 16).value();
  Status status;
  below_->TakeOut(
      prompt,
      [this](std::size_t) {
        below_->Close();
        return PartLane::Taken{.positions = 1, .more = true};
      },
      [&](const PartLane::Outcome& outcome) { status = outcome.status; });
  RunErrands();
  EXPECT_EQ(status.code(), Code::kCancelled);
}

TEST_F(PartLaneTest, APromptWaitsUntilThereIsRoomForAllOfItAndIsNotOvertaken) {
  Open(/*positions=*/128);  // two pages of the engine's
  std::vector<int> order;
  std::vector<std::shared_ptr<PartLane::Prompt>> prompts;
  for (int i = 0; i < 4; ++i) prompts.push_back(below_->Open({0, 3}, 20).value());
  for (int i = 0; i < 4; ++i) {
    below_->Run(prompts[static_cast<std::size_t>(i)], {.tokens = Text(5)},
                [&order, i](const PartLane::Outcome& outcome) {
                  EXPECT_TRUE(outcome.status.ok());
                  order.push_back(i);
                });
  }
  for (int i = 0; i < 4 && !errands_.empty(); ++i) {  // those that wait ask for passes
    errands_.front()();
    errands_.pop_front();
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
  EXPECT_EQ(below_->counters().prompts_now, 4u);
  prompts.erase(prompts.begin(), prompts.begin() + 2);
  RunErrands();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(PartLaneTest, WhatNeverFitsAndOtherLayersAreRefusedInOneLine) {
  Open();
  EXPECT_THAT(below_->Open({0, 3}, 65).status().message(),
              HasSubstr("a cut prompt of 65 tokens, there is room for 64"));
  EXPECT_THAT(below_->Open({0, 6}, 4).status().message(), HasSubstr("expected some of 0 to 5"));
  EXPECT_FALSE(above_->Open({2, 8}, 4).ok());
  EXPECT_TRUE(CheckPromptCut(engine_->config(), 7).ok());
  EXPECT_THAT(CheckPromptCut(engine_->config(), 8).message(),
              HasSubstr("a cut before layer 8, 1 to 7 expected"));
}

TEST_F(PartLaneTest, AClosedLaneFailsWhatWaitsAndWhatComes) {
  Open();
  const auto prompt = below_->Open({0, 3}, 4).value();
  int cancelled = 0;
  const auto count = [&](const PartLane::Outcome& outcome) {
    cancelled += outcome.status.code() == Code::kCancelled ? 1 : 0;
  };
  below_->Run(prompt, {.tokens = Text(4)}, count);
  below_->Close();
  EXPECT_EQ(cancelled, 1);
  below_->Run(prompt, {.tokens = Text(4)}, count);
  EXPECT_EQ(cancelled, 2);
  EXPECT_EQ(below_->Open({0, 3}, 4).status().code(), Code::kCancelled);
  RunErrands();
  EXPECT_EQ(below_->counters().passes, 0u);
}

TEST_F(PartLaneTest, AllOfAPassThatFailsWhileTheLaneIsClosedAreToldAndLeaveNothing) {
  Open(/*positions=*/192);
  const std::vector<float> bad(2 * engine_->config().width,
                               std::numeric_limits<float>::quiet_NaN());
  int told = 0;
  const auto seen = std::make_shared<int>(0);
  for (int i = 0; i < 3; ++i) {
    above_->Run(above_->Open({3, 8}, 4).value(), {.stream = bad},
                [&told, seen](const PartLane::Outcome& outcome) {
                  EXPECT_FALSE(outcome.status.ok());
                  ++told;
                });
  }
  clock_.OnLook([this] { above_->Close(); });
  RunErrands();
  EXPECT_EQ(told, 3);
  EXPECT_EQ(seen.use_count(), 1) << "nothing that waits is kept";
  EXPECT_EQ(above_->counters().prompts_now, 0u);
}

TEST_F(PartLaneTest, TakesTheMemoryThatThePlanCounts) {
  Open();
  const PartShape shape{.layers = {0, 5}, .positions = 64};
  const Bytes small = PartRunner::BytesFor(engine_->config(), shape, KvType::kF16, 64);
  EXPECT_GT(16 * small.count(), 5 * engine_->kv().bytes().count());
  EXPECT_EQ(PartRunner::BytesFor(engine_->config(), {.layers = {0, 5}}, KvType::kF16, 64), Bytes());
  const PartShape twice{.layers = {0, 5}, .positions = 128};
  EXPECT_GT(PartRunner::BytesFor(engine_->config(), twice, KvType::kF16, 64), small);
}

}  // namespace
}  // namespace troupe
