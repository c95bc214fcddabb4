// What a host answers, refuses and leaves undone of what it is asked.
#include "cluster/peer_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_share.h"
#include "cluster/peer_calls_for_test.h"

namespace troupe {
namespace {

TEST_F(PeerCallsTest, AHostThatIsAskedTooMuchRefusesAtOnce) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::vector<std::byte>> asks;
  nodes_->on_ask = [&](LinkId, std::vector<std::byte> frame) {
    asks.push_back(std::move(frame));
    return OkStatus();
  };
  Ask();
  std::size_t told = 0;
  nodes_->on_answer = [&](LinkId, const std::vector<std::byte>& frame) {
    const Result<PeerAskRefused> refused = DecodePeerAskRefused(frame);
    if (refused.ok() && refused->reason == PeerAskRefused::Reason::kBusy) ++told;
    return OkStatus();
  };
  for (int i = 0; i < 2000; ++i) nodes_->Deliver(1, asks[0]);
  EXPECT_GT(nodes_->host(0).counters().busy, 0u);
  while (nodes_->host(0).waiting() > 0) std::this_thread::yield();
  nodes_->on_answer = [](LinkId, const std::vector<std::byte>&) { return OkStatus(); };
  EXPECT_EQ(told, nodes_->host(0).counters().busy);
  nodes_->calls().Forget();
}

TEST_F(PeerCallsTest, AHostDoesNotBeginWhatItsAskerHasGivenUp) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::byte> sent;
  nodes_->on_ask = [&](LinkId, const std::vector<std::byte>& frame) {
    if (sent.empty()) sent = frame;
    return OkStatus();
  };
  Ask();
  PeerAsk ask = DecodePeerAsk(sent).value();
  ask.deadline_micros = 1;
  const std::vector<std::byte> hasty = Encode(ask);
  nodes_->on_answer = [](LinkId, const std::vector<std::byte>&) { return OkStatus(); };
  while (nodes_->host(0).counters().expired < 1) {
    nodes_->Deliver(1, hasty);
    std::this_thread::yield();
  }
  nodes_->calls().Forget();
}

TEST_F(PeerCallsTest, ADamagedAskIsCountedAndNotAnswered) {
  Open(1);
  std::size_t answers = 0;
  nodes_->on_answer = [&](LinkId, const std::vector<std::byte>&) {
    ++answers;
    return OkStatus();
  };
  nodes_->Deliver(1, std::vector<std::byte>(5));
  EXPECT_EQ(nodes_->host(0).counters().bad, 1u);
  EXPECT_EQ(nodes_->host(0).waiting(), 0u);
  EXPECT_EQ(answers, 0u);
}

// The plan of memory counts no more rows, though more fit in a frame.
TEST_F(PeerCallsTest, AnAskOfMoreRowsThanArePlannedForIsRefused) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::vector<std::byte>> answers;
  std::mutex mu;
  nodes_->on_answer = [&](LinkId, std::vector<std::byte> frame) {
    const std::lock_guard lock(mu);
    answers.push_back(std::move(frame));
    return OkStatus();
  };
  const CallShape& shape = nodes_->shape();
  const std::uint16_t row = 0;
  const auto ask = [&](std::size_t rows) {
    const std::vector<std::byte> zeros(rows * WireRowBytes(shape.forms[1], shape.width));
    nodes_->Deliver(
        1, Encode(PeerAsk{
               .layer = 1,
               .experts = {{.expert = static_cast<std::uint16_t>(experts_[0]),
                            .rows = std::span(&row, 1)}},
               .rows = {
                   .form = shape.forms[1], .width = shape.width, .count = rows, .bytes = zeros}}));
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
      const std::lock_guard lock(mu);
      if (!answers.empty()) return std::exchange(answers, {}).front();
    }
  };
  EXPECT_TRUE(DecodePeerAnswer(ask(kMostRowsAsked)).ok());
  const Result<PeerAskRefused> refused = DecodePeerAskRefused(ask(kMostRowsAsked + 1));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->reason, PeerAskRefused::Reason::kBad);
  EXPECT_EQ(refused->text, "513 rows, at most 512 allowed");
}

TEST_F(PeerCallsTest, AnAnswerThatTheLinkHasNoRoomForIsRefusedAndCountsAsUnsent) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_answer = [this](LinkId link, std::vector<std::byte> frame) {
    if (DecodePeerAnswer(frame).ok()) return Error(Code::kResourceExhausted, "no room");
    nodes_->calls().OnFrame(link, std::move(frame));
    return OkStatus();
  };
  Ask();
  const TakenNews had = TakeAllNews(nodes_->calls());
  EXPECT_EQ(had.to_load.size(), experts_.size());
  EXPECT_EQ(nodes_->host(0).counters().unsent, 1u);
  EXPECT_EQ(nodes_->host(0).counters().calls, 0u);
  EXPECT_EQ(nodes_->host(0).counters().busy, 0u) << "it was not too busy to compute it";
  EXPECT_GE(nodes_->calls().counters().refused, 1u);
}

// What a host answers to one long call whose parts are an expert each, where another link asks, or
// the first one cancels, while the first part is computed: links by message.
class PeerHostParts : public PeerCallsTest {
 protected:
  std::vector<LinkId> LinksOfAnswers(bool cancels) {
    nodes_ = std::make_unique<TwoNodes>(TensorType::kQ4_0, 1, /*most_of_one_message=*/1);
    layer_ = std::make_unique<AskedLayer>(nodes_->config(), 1, 6, rng_);
    experts_ = layer_->experts();
    nodes_->Hold(0, 1, experts_);
    std::vector<std::byte> sent;
    nodes_->on_ask = [&](LinkId, std::vector<std::byte> frame) {
      sent = std::move(frame);
      return OkStatus();
    };
    Ask();
    const PeerAsk ask = DecodePeerAsk(sent).value();
    std::mutex mu;
    std::vector<LinkId> links;
    nodes_->on_answer = [&](LinkId link, const std::vector<std::byte>&) {
      const std::lock_guard lock(mu);
      links.push_back(link);
      if (links.size() > 1) return OkStatus();
      cancels ? nodes_->host(0).OnCancel(1, ask.call) : nodes_->host(0).OnAsk(2, sent);
      return OkStatus();
    };
    nodes_->host(0).OnAsk(1, sent);
    const auto is_over = [&] {
      const std::lock_guard lock(mu);
      return cancels ? nodes_->host(0).counters().cancelled == 1
                     : links.size() == 2 * experts_.size();
    };
    while (!is_over()) std::this_thread::yield();
    nodes_->calls().Forget();
    const std::lock_guard lock(mu);
    return links;
  }
};

TEST_F(PeerHostParts, OthersAreAnsweredBetweenThePartsOfALongCall) {
  const std::vector<LinkId> links = LinksOfAnswers(/*cancels=*/false);
  ASSERT_GT(links.size(), 6u);
  EXPECT_EQ(links[0], 1u);
  EXPECT_EQ(links[1], 2u);
  EXPECT_EQ(std::ranges::count(links, 1u), std::ranges::count(links, 2u));
}

TEST_F(PeerHostParts, NoFurtherPartOfACallIsComputedOnceItIsCancelled) {
  EXPECT_EQ(LinksOfAnswers(/*cancels=*/true), std::vector<LinkId>{1});
}

// A host that always has calls of peers, on one processor with somebody who computes, too.
class PeerHostShare : public PeerCallsTest {
 protected:
  PeerHostShare() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    int first = 0;
    while (!CPU_ISSET(first, &before_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ::sched_setaffinity(0, sizeof one, &one);  // threads that begin here inherit it
  }
  ~PeerHostShare() override { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

TEST_F(PeerHostShare, OwnPassesComeBeforeTheCallsOfPeers) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  std::vector<std::byte> sent;
  nodes_->on_ask = [&](LinkId, std::vector<std::byte> frame) {
    sent = std::move(frame);
    return OkStatus();
  };
  Ask();
  PeerAsk patient = DecodePeerAsk(sent).value();
  patient.deadline_micros = 0;
  sent = Encode(patient);
  std::atomic<bool> goes_on = true;
  nodes_->on_answer = [&](LinkId link, const std::vector<std::byte>& frame) {
    const Result<PeerAnswer> answer = DecodePeerAnswer(frame);
    if (goes_on && answer.ok() && answer->last) nodes_->host(0).OnAsk(link, sent);
    return OkStatus();
  };
  for (int i = 0; i < 3; ++i) nodes_->host(0).OnAsk(1, sent);
  const HostCounters before = nodes_->host(0).counters();
  const Nanos start = ThreadProcessorTime();
  const Nanos end = MonotonicClock().Now() + 1'000'000'000;
  while (MonotonicClock().Now() < end) {
  }
  const double own = static_cast<double>(ThreadProcessorTime() - start) * 1e-9;
  const HostCounters after = nodes_->host(0).counters();
  goes_on = false;
  while (nodes_->host(0).waiting() > 0) std::this_thread::yield();
  nodes_->on_answer = [](LinkId, const std::vector<std::byte>&) { return OkStatus(); };
  nodes_->calls().Forget();
  const double held_back = after.held_back_seconds - before.held_back_seconds;
  const double peers = after.seconds - before.seconds - held_back;
  EXPECT_GT(after.calls, before.calls) << "peers are not left out";
  EXPECT_GT(held_back, 0);
  EXPECT_GT(own, 2 * peers) << "three times as much is meant";
}

}  // namespace
}  // namespace troupe
