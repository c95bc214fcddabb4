// Which of the answers that come from peers are used: late ones, wrong ones, and those of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "cluster/peer_calls_for_test.h"

namespace troupe {
namespace {

using testing::IsEmpty;

TEST_F(PeerCallsTest, AnAnswerThatComesWhileTheDiskIsReadIsUsed) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::byte> kept;
  nodes_->on_ask = [&](LinkId, const std::vector<std::byte>& frame) {
    kept = frame;
    return OkStatus();
  };
  Ask();
  std::vector<std::uint32_t> to_load;
  while (to_load.empty()) {
    const ExpertPeers::News news = nodes_->calls().Take();
    to_load.assign(news.to_load.begin(), news.to_load.end());
    if (to_load.empty()) nodes_->calls().Wait(std::nullopt);
  }
  EXPECT_EQ(to_load.size(), experts_.size());
  nodes_->on_ask = nullptr;
  nodes_->Deliver(1, kept);
  TakenNews had;
  while (nodes_->calls().waiting()) {
    nodes_->calls().Wait(std::nullopt);
    for (const ExpertPeers::Rows& rows : nodes_->calls().Take().answered) {
      had.answered[rows.expert] = {rows.values.begin(), rows.values.end()};
    }
  }
  ExpectBytes(had);
  EXPECT_EQ(nodes_->calls().counters().overtook, experts_.size());
  EXPECT_EQ(nodes_->calls().counters().unused, 0u);
}

TEST_F(PeerCallsTest, LateAnswersOfALayerThatIsOverAreNotTakenForThoseOfTheNext) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::vector<std::byte>> kept;
  std::atomic<bool> has_come = false;
  nodes_->on_answer = [&](LinkId, std::vector<std::byte> frame) {
    kept.push_back(std::move(frame));
    has_come = true;
    return OkStatus();
  };
  Ask();
  while (!has_come) std::this_thread::yield();
  nodes_->calls().Forget();
  nodes_->on_answer = nullptr;
  const AskedLayer next(nodes_->config(), 1, 6, rng_);
  (void)nodes_->calls().Places();
  std::vector<std::uint32_t> held;
  for (const std::uint32_t expert : next.experts()) {
    if (nodes_->held(0).Holds({1, expert})) held.push_back(expert);
  }
  nodes_->calls().Ask(next.batch(), MissesOf(held, 0));
  for (const auto& frame : kept) nodes_->calls().OnFrame(1, frame);
  const TakenNews had = TakeAllNews(nodes_->calls());
  for (const auto& [expert, values] : had.answered) EXPECT_EQ(values, nodes_->Alone(next, expert));
  EXPECT_EQ(had.answered.size(), held.size());
  EXPECT_EQ(nodes_->calls().counters().unused, experts_.size());
}

TEST_F(PeerCallsTest, AnAnswerOfAnotherShapeIsNotUsed) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [this](LinkId link, const std::vector<std::byte>& frame) {
    const PeerAsk ask = DecodePeerAsk(frame).value();
    const std::vector<float> row(nodes_->shape().width);
    PeerAnswer answer{
        .call = ask.call,
        .last = true,
        .experts = {{.expert = ask.experts[0].expert,
                     .rows = static_cast<std::uint16_t>(ask.experts[0].rows.size() + 1)}},
        .rows = {.width = nodes_->shape().width}};
    std::vector<float> rows((ask.experts[0].rows.size() + 1) * row.size());
    answer.rows.count = ask.experts[0].rows.size() + 1;
    answer.rows.bytes = std::as_bytes(std::span(rows));
    nodes_->calls().OnFrame(link, Encode(answer));
    return OkStatus();
  };
  Ask();
  EXPECT_EQ(TakeAllNews(nodes_->calls()).to_load.size(), experts_.size());
  EXPECT_EQ(nodes_->calls().counters().malformed, 1u);
  EXPECT_THAT(nodes_->calls().TakeRemarks(),
              testing::Contains(testing::HasSubstr("does not fit what was asked")));
}

TEST_F(PeerCallsTest, AnswersThatCannotBeReadAreCountedAndToldOnceForEachLifeOfAPeer) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [](LinkId, const std::vector<std::byte>&) { return OkStatus(); };
  Ask();
  for (std::uint64_t life = 1; life <= 2; ++life) {
    nodes_->directory().OnCame("host0", /*link=*/1, life, 1e-6);
    (void)nodes_->calls().Places();
    for (int i = 0; i < 3; ++i) nodes_->calls().OnFrame(1, std::vector<std::byte>(5));
    (void)nodes_->calls().Take();
    EXPECT_EQ(nodes_->calls().counters().malformed, 3 * life);
    EXPECT_THAT(nodes_->calls().TakeRemarks(),
                testing::ElementsAre("an answer of node host0 cannot be read: it counts for "
                                     "nothing"));
  }
  nodes_->calls().Forget();
}

TEST(PeerCalls, AnswersBeyondWhatMayWaitAreDroppedAndCounted) {
  PeerDirectory directory;
  const MonotonicClock clock;
  PeerCalls calls({.grid = {.layers = 1, .experts = 1}, .width = 32, .forms = {RowForm::kFloat}},
                  directory, [](LinkId, std::vector<std::byte>) { return OkStatus(); }, clock,
                  {.rules = {}, .most_unread = 1'000});
  for (int i = 0; i < 3; ++i) calls.OnFrame(1, std::vector<std::byte>(600));
  EXPECT_EQ(calls.counters().dropped, 2u);
}

// One that rounds unasked would make an exact answer inexact, and nobody would count it.
TEST_F(PeerCallsTest, AnAnswerInAnotherFormThanWasAskedForIsNotUsed) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [this](LinkId link, const std::vector<std::byte>& frame) {
    PeerAsk ask = DecodePeerAsk(frame).value();
    ask.answer = RowForm::kBf16;
    nodes_->Deliver(link, Encode(ask));
    return OkStatus();
  };
  Ask();
  const TakenNews had = TakeAllNews(nodes_->calls());
  EXPECT_THAT(had.answered, IsEmpty());
  EXPECT_EQ(had.to_load.size(), experts_.size());
}

TEST_F(PeerCallsTest, AnAnswerFromAnotherLinkIsNotUsed) {
  Open(2);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_answer = [this](LinkId, const std::vector<std::byte>& frame) {
    nodes_->calls().OnFrame(2, frame);  // as if the other peer had said it
    return OkStatus();
  };
  Ask();
  const TakenNews had = TakeAllNews(nodes_->calls());
  EXPECT_THAT(had.answered, IsEmpty());
  EXPECT_EQ(had.to_load.size(), experts_.size());
}

// A disk that fails at all of them has each asked for by itself.
TEST(PeerCalls, EveryAnswerOfALayerIsUsedHoweverManyCallsItHas) {
  constexpr std::uint32_t kExperts = 80, kWidth = 32;
  constexpr ExpertGrid kManyGrid{.layers = 1, .experts = kExperts};
  PeerDirectory directory;
  directory.OnCame("host", /*link=*/1, /*start=*/1, 1e-6);
  ExpertBits all(kManyGrid);
  for (std::uint32_t expert = 0; expert < kExperts; ++expert) all.Add({0, expert});
  directory.OnHoldings(1, all);
  const MonotonicClock clock;
  std::vector<PeerAsk> asks;
  std::vector<std::vector<std::byte>> frames;  // that the asks show
  PeerCalls calls({.grid = kManyGrid, .width = kWidth, .forms = {RowForm::kFloat}}, directory,
                  [&](LinkId, std::vector<std::byte> frame) {
                    frames.push_back(std::move(frame));
                    asks.push_back(DecodePeerAsk(frames.back()).value());
                    return OkStatus();
                  },
                  clock, {.rules = {.least = 600'000'000'000}});
  const std::vector<float> row(kWidth, 1.0F);
  const std::vector<std::uint32_t> rows(kExperts, 0);
  std::vector<std::uint32_t> first_row(kExperts + 1);
  std::iota(first_row.begin(), first_row.end(), 0);
  const ExpertBatch batch{.input = MakeActivations(row.data(), kWidth, 1, kWidth, {}),
                          .rows = rows,
                          .first_row = first_row};
  for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
    ASSERT_TRUE(calls.AskInPlaceOfDisk(batch, expert));
  }
  ASSERT_EQ(asks.size(), kExperts);
  for (const PeerAsk& ask : asks) {
    calls.OnFrame(
        1, Encode(PeerAnswer{
               .call = ask.call,
               .last = true,
               .experts = {{.expert = ask.experts[0].expert, .rows = 1}},
               .rows = {.width = kWidth, .count = 1, .bytes = std::as_bytes(std::span(row))}}));
  }
  EXPECT_EQ(calls.Take().answered.size(), kExperts);
  EXPECT_FALSE(calls.waiting());
}

// A peer that starts anew as often as it likes, and another one that accuses it each time.
TEST_F(PeerCallsTest, OfEachPeerOneLifeIsSuspectedHoweverOftenItStartsAnew) {
  Open(2);
  for (std::uint64_t start = 100; start < 1100; ++start) {
    nodes_->directory().OnCame("host0", /*link=*/1, start, 1e-6);
    nodes_->calls().Suspect(start);
    ASSERT_EQ(nodes_->calls().suspects(), 1u);
  }
  nodes_->calls().Suspect(2);  // the other peer
  EXPECT_EQ(nodes_->calls().suspects(), 2u);
  nodes_->directory().OnCame("host0", /*link=*/1, 1100, 1e-6);
  nodes_->calls().Suspect(2);
  EXPECT_EQ(nodes_->calls().suspects(), 1u);
}

}  // namespace
}  // namespace troupe
