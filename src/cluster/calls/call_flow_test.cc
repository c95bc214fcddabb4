#include "cluster/calls/call_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Peers = std::vector<PeerIndex>;

constexpr Nanos kMs = 1'000'000;

// Each answers an expert of one row in 10 ms, and each further one in another millisecond.
std::vector<Place> ThreePeers() {
  return {3, Place{.name = "peer", .latency_seconds = 9e-3, .expert_seconds = 1e-3}};
}

struct Asked {
  std::uint32_t expert;
  Peers holders;
};

void Ask(CallFlow& flow, const std::vector<Asked>& asked) {
  std::vector<AskedExpert> experts;
  for (const Asked& one : asked) {
    experts.push_back({.expert = one.expert, .rows = 1, .holders = one.holders});
  }
  flow.Ask(experts, ThreePeers());
}

TEST(CallFlow, SendsOneMessageToEachPeer) {
  CallFlow flow;
  Ask(flow, {{4, {0}}, {5, {1}}, {6, {0}}});
  const auto calls = flow.TakeCalls(0);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].peer, 0u);
  EXPECT_THAT(calls[0].experts, ElementsAre(4, 6));
  EXPECT_EQ(calls[1].peer, 1u);
  EXPECT_THAT(calls[1].experts, ElementsAre(5));
  EXPECT_THAT(flow.TakeCalls(0), IsEmpty());
  EXPECT_EQ(flow.counters().calls, 2u);
  EXPECT_EQ(flow.counters().experts, 3u);
}

TEST(CallFlow, AnswersMayComeExpertByExpert) {
  CallFlow flow;
  Ask(flow, {{4, {0}}, {6, {0}}});
  const PeerCallId call = flow.TakeCalls(0)[0].call;
  EXPECT_TRUE(flow.OnAnswered(call, 6));
  EXPECT_EQ(flow.waiting(), 1u);
  EXPECT_TRUE(flow.OnAnswered(call, 4));
  EXPECT_EQ(flow.waiting(), 0u);
  EXPECT_FALSE(flow.NextTime());
}

TEST(CallFlow, ALateAnswerIsAskedOfTheNextHolderAndThenReadFromTheDisk) {
  CallFlow flow({.late_after = 2, .least = 1 * kMs});
  Ask(flow, {{4, {0, 2}}});
  (void)flow.TakeCalls(100 * kMs);
  ASSERT_EQ(flow.NextTime(), 120 * kMs);  // twice the 10 ms that it should take
  flow.OnTime(119 * kMs);
  EXPECT_THAT(flow.TakeCalls(119 * kMs), IsEmpty());
  flow.OnTime(120 * kMs);
  const auto hedges = flow.TakeCalls(120 * kMs);
  ASSERT_EQ(hedges.size(), 1u);
  EXPECT_EQ(hedges[0].peer, 2u);
  EXPECT_TRUE(hedges[0].is_hedge);
  EXPECT_EQ(flow.NextTime(), 140 * kMs);
  flow.OnTime(140 * kMs);
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(4));
  EXPECT_EQ(flow.waiting(), 1u) << "either may still be sooner than the disk";
  EXPECT_FALSE(flow.NextTime());
  flow.OnLoaded(4);
  EXPECT_EQ(flow.waiting(), 0u);
  EXPECT_EQ(flow.TakeCancels().size(), 2u);
  EXPECT_EQ(flow.counters().overtook, 0u);
  EXPECT_EQ(flow.counters().hedges, 1u);
  EXPECT_EQ(flow.counters().to_disk, 1u);
}

TEST(CallFlow, AnAnswerThatComesBeforeTheLoadInItsPlaceIsUsed) {
  CallFlow flow({.late_after = 2, .least = 1 * kMs});
  Ask(flow, {{4, {0}}});
  const PeerCallId call = flow.TakeCalls(0)[0].call;
  flow.OnTime(*flow.NextTime());
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(4));
  EXPECT_THAT(flow.TakeCancels(), IsEmpty());
  EXPECT_TRUE(flow.OnAnswered(call, 4));
  EXPECT_EQ(flow.counters().overtook, 1u);
  EXPECT_EQ(flow.counters().unused, 0u);
  EXPECT_EQ(flow.waiting(), 0u);
}

TEST(CallFlow, ARefusalWhileTheDiskIsReadAsksNobodyElse) {
  CallFlow flow({.late_after = 2, .least = 1 * kMs});
  Ask(flow, {{4, {0}}});
  const PeerCallId call = flow.TakeCalls(0)[0].call;
  flow.OnTime(*flow.NextTime());
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(4));
  flow.OnRefused(call);
  EXPECT_EQ(flow.waiting(), 0u);
  EXPECT_THAT(flow.TakeToLoad(), IsEmpty());
}

TEST(CallFlow, WhatTheDiskFailsAtIsAskedOfEveryHolderHoweverSlow) {
  std::vector<Place> peers = ThreePeers();
  peers[1].queued_seconds = 60;
  const Peers holders = {0, 1};
  CallFlow flow({.late_after = 2, .least = 1 * kMs});
  flow.Ask({}, peers);
  flow.AskInPlaceOfDisk({.expert = 4, .rows = 1, .holders = holders, .load_seconds = 1e-3});
  const auto first = flow.TakeCalls(0);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].peer, 0u);
  EXPECT_GT(first[0].given_up_after, 1'000 * kMs);
  flow.OnRefused(first[0].call);
  const auto second = flow.TakeCalls(0);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].peer, 1u);
  flow.OnTime(*flow.NextTime());
  EXPECT_THAT(flow.TakeToLoad(), IsEmpty()) << "there is nobody else";
  EXPECT_EQ(flow.waiting(), 1u);
  EXPECT_TRUE(flow.OnAnswered(second[0].call, 4));
  EXPECT_EQ(flow.counters().failed_loads, 1u);
}

TEST(CallFlow, ABusyHolderOfWhatTheDiskFailedAtIsAskedAgainForAWhile) {
  CallFlow flow({.without_disk = 100 * kMs, .busy_pause = 20 * kMs});
  Ask(flow, {});
  const Peers holders = {0};
  flow.AskInPlaceOfDisk({.expert = 4, .rows = 1, .holders = holders});
  Nanos now = 0;
  int asked = 0;
  for (; flow.waiting() > 0; ++asked) {
    const std::vector<CallToSend> calls = flow.TakeCalls(now);
    ASSERT_EQ(calls.size(), 1u);
    ASSERT_LT(asked, 100);
    flow.OnBusy(calls[0].call, now += kMs);
    EXPECT_EQ(flow.waiting(), 1u);
    EXPECT_THAT(flow.TakeToLoad(), IsEmpty());
    EXPECT_EQ(flow.NextTime(), now + 20 * kMs);
    now += 20 * kMs;
    (void)flow.OnTime(now);
  }
  EXPECT_EQ(asked, 5);  // until 100 ms after it was busy for the first time
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(4));
  EXPECT_EQ(flow.counters().asked_again, 4u);
}

TEST(CallFlow, ABusyHolderThatHasRoomAgainAnswers) {
  CallFlow flow;
  Ask(flow, {});
  const Peers holders = {0, 1};
  flow.AskInPlaceOfDisk({.expert = 4, .rows = 1, .holders = holders});
  flow.OnBusy(flow.TakeCalls(0)[0].call, kMs);
  flow.OnRefused(flow.TakeCalls(kMs)[0].call);  // the other one does not hold it any more
  EXPECT_THAT(flow.TakeToLoad(), IsEmpty());
  (void)flow.OnTime(*flow.NextTime());
  const std::vector<CallToSend> again = flow.TakeCalls(kMs);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].peer, 0u);
  EXPECT_TRUE(flow.OnAnswered(again[0].call, 4));
}

TEST(CallFlow, WhoNeverAnswersWhatTheDiskFailedAtIsNotWaitedForForEver) {
  const Peers holders = {0};
  CallFlow flow;
  flow.Ask({}, ThreePeers());
  flow.AskInPlaceOfDisk({.expert = 4, .rows = 1, .holders = holders});
  (void)flow.TakeCalls(0);
  int turns = 0;
  while (const auto next = flow.NextTime()) {
    flow.OnTime(*next);
    ASSERT_LT(++turns, 5);
  }
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(4));
}

TEST(CallFlow, TheFirstOfTwoAnswersIsUsedAndTheOtherCounted) {
  CallFlow flow;
  Ask(flow, {{4, {0, 1}}});
  const PeerCallId first = flow.TakeCalls(0)[0].call;
  flow.OnTime(*flow.NextTime());
  const PeerCallId hedge = flow.TakeCalls(*flow.NextTime())[0].call;
  EXPECT_TRUE(flow.OnAnswered(hedge, 4));
  EXPECT_FALSE(flow.OnAnswered(first, 4));
  EXPECT_EQ(flow.counters().answered, 1u);
  EXPECT_EQ(flow.counters().unused, 1u);
}

TEST(CallFlow, AHolderThatIsSlowerThanTheDiskIsNotAskedInPlaceOfALateOne) {
  std::vector<Place> peers = ThreePeers();
  peers[1].queued_seconds = 60;
  const Peers holders = {0, 1, 2};
  for (const bool is_refused : {true, false}) {
    CallFlow flow;
    const AskedExpert asked[] = {
        {.expert = 4, .rows = 1, .holders = holders, .load_seconds = 15e-3},
        {.expert = 5, .rows = 1, .holders = std::span(holders).first(2), .load_seconds = 15e-3}};
    flow.Ask(asked, peers);
    const PeerCallId first = flow.TakeCalls(0)[0].call;
    if (is_refused) {
      flow.OnRefused(first);
    } else {
      EXPECT_THAT(flow.OnTime(*flow.NextTime()), ElementsAre(first));
    }
    const auto next = flow.TakeCalls(0);
    ASSERT_EQ(next.size(), 1u);
    EXPECT_EQ(next[0].peer, 2u);
    EXPECT_THAT(next[0].experts, ElementsAre(4));
    EXPECT_THAT(flow.TakeToLoad(), ElementsAre(5));
  }
}

TEST(CallFlow, OnlyWhoIsLateIsSaidToBe) {
  std::vector<Place> peers = ThreePeers();
  peers[1].queued_seconds = 1;
  const Peers quick = {0}, slow = {1};
  const AskedExpert asked[] = {{.expert = 4, .rows = 1, .holders = quick},
                               {.expert = 5, .rows = 1, .holders = slow}};
  CallFlow flow;
  flow.Ask(asked, peers);
  const PeerCallId first = flow.TakeCalls(0)[0].call;
  EXPECT_THAT(flow.OnTime(100 * kMs), ElementsAre(first));
  EXPECT_THAT(flow.OnTime(200 * kMs), IsEmpty());
}

TEST(CallFlow, ACallIsLateOnce) {
  CallFlow flow;
  Ask(flow, {{4, {0, 1}}});
  const PeerCallId first = flow.TakeCalls(0)[0].call;
  EXPECT_THAT(flow.OnTime(*flow.NextTime()), ElementsAre(first));
  flow.OnRefused(flow.TakeCalls(0)[0].call);
  EXPECT_THAT(flow.OnTime(1000 * kMs), IsEmpty());
}

TEST(CallFlow, ACallThatNobodyWaitsForIsCancelledOnce) {
  CallFlow flow;
  Ask(flow, {{4, {0, 1}}});
  const PeerCallId first = flow.TakeCalls(0)[0].call;
  flow.OnTime(*flow.NextTime());
  const PeerCallId hedge = flow.TakeCalls(0)[0].call;
  EXPECT_THAT(flow.TakeCancels(), IsEmpty());
  EXPECT_TRUE(flow.OnAnswered(hedge, 4));
  flow.OnRefused(hedge);  // that was all of it
  EXPECT_THAT(flow.TakeCancels(), ElementsAre(CallToCancel{.call = first, .peer = 0}));
  EXPECT_THAT(flow.TakeCancels(), IsEmpty());
  EXPECT_EQ(flow.counters().cancelled, 1u);
}

TEST(CallFlow, WhatWasLoadedOrIsForgottenIsNotAnsweredByPeers) {
  CallFlow flow;
  Ask(flow, {{4, {0}}});
  (void)flow.TakeCalls(0);
  flow.OnTime(*flow.NextTime());
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(4));
  flow.OnLoaded(4);
  EXPECT_THAT(flow.TakeCancels(), testing::SizeIs(1));
  Ask(flow, {{4, {0}}, {5, {1}}, {6, {1}}});
  (void)flow.TakeCalls(0);
  flow.Forget();
  EXPECT_THAT(flow.TakeCancels(), testing::SizeIs(2));
}

TEST(CallFlow, AHostIsToldUntilWhenItNeedNotBegin) {
  CallFlow flow({.late_after = 2, .least = 1 * kMs, .given_up_after = 4});
  Ask(flow, {{4, {0}}});
  EXPECT_EQ(flow.TakeCalls(0)[0].given_up_after, 80 * kMs);
}

TEST(CallFlow, TheFirstPeerMayStillAnswerWhileTheNextIsAsked) {
  CallFlow flow;
  Ask(flow, {{4, {0, 1}}});
  const PeerCallId first = flow.TakeCalls(0)[0].call;
  flow.OnTime(*flow.NextTime());
  (void)flow.TakeCalls(0);
  flow.OnLost(1);
  EXPECT_THAT(flow.TakeToLoad(), IsEmpty());
  EXPECT_TRUE(flow.OnAnswered(first, 4));
}

TEST(CallFlow, ARefusalGoesToTheNextHolderOrToTheDisk) {
  CallFlow flow;
  Ask(flow, {{4, {0}}, {5, {0, 1}}});
  flow.OnRefused(flow.TakeCalls(0)[0].call);
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(4));
  const auto calls = flow.TakeCalls(0);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].peer, 1u);
  EXPECT_FALSE(calls[0].is_hedge);
  EXPECT_EQ(flow.counters().refused, 1u);
}

TEST(CallFlow, WhatALostPeerHadIsAskedElsewhereAndItIsAskedNoMore) {
  CallFlow flow;
  Ask(flow, {{4, {0, 1}}, {5, {0}}, {6, {1, 0}}});
  (void)flow.TakeCalls(0);
  flow.OnLost(0);
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(5));
  const auto calls = flow.TakeCalls(0);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].peer, 1u);
  EXPECT_THAT(calls[0].experts, ElementsAre(4));
  flow.OnTime(1000 * kMs);  // 6 waits for 1, and 0 is gone
  EXPECT_THAT(flow.TakeToLoad(), UnorderedElementsAre(4, 6));
  EXPECT_EQ(flow.counters().lost, 1u);
}

TEST(CallFlow, APeerLostBeforeItsCallWasSentGetsNone) {
  CallFlow flow;
  Ask(flow, {{4, {0}}});
  flow.OnLost(0);
  EXPECT_THAT(flow.TakeCalls(0), IsEmpty());
  EXPECT_THAT(flow.TakeToLoad(), ElementsAre(4));
}

TEST(CallFlow, NothingIsWaitedForOnceThePassHasGivenUp) {
  CallFlow flow;
  Ask(flow, {{4, {0}}});
  const PeerCallId call = flow.TakeCalls(0)[0].call;
  flow.Forget();
  EXPECT_EQ(flow.waiting(), 0u);
  EXPECT_FALSE(flow.NextTime());
  EXPECT_FALSE(flow.OnAnswered(call, 4));
  flow.OnRefused(call);
  flow.OnLost(0);
  EXPECT_EQ(flow.counters().refused + flow.counters().lost, 0u);
  Ask(flow, {{4, {0}}});
  EXPECT_NE(flow.TakeCalls(0)[0].call, call);  // so that its late answer is not taken for a new one
}

TEST(CallFlow, MoreExpertsMayTakeLonger) {
  CallFlow flow({.late_after = 1, .least = 0});
  Ask(flow, {{1, {0}}, {2, {0}}, {3, {0}}});
  (void)flow.TakeCalls(0);
  EXPECT_EQ(flow.NextTime(), 12 * kMs);
}

// Peers answer, refuse, die or are silent as the seed says, and loads end, fail or go on. Each
// expert is had exactly once, from whoever was first, or is given up as nobody has it.
TEST(CallFlow, EveryExpertIsAnsweredOrLoadedOnceUnderAnyFaults) {
  std::mt19937_64 random(TestSeed());
  CallCounters all;
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    CallFlow flow;
    Nanos now = 0;
    std::vector<Asked> asked;
    for (std::uint32_t expert = 0; expert < 1 + random() % 6; ++expert) {
      Peers holders = {0, 1, 2};
      std::ranges::shuffle(holders, random);
      holders.resize(1 + random() % 3);
      asked.push_back({expert, holders});
    }
    Ask(flow, asked);
    std::multiset<std::uint32_t> had;
    std::set<std::uint32_t> loading, failed, given_up;
    std::vector<std::pair<CallToSend, std::set<std::uint32_t>>> open;  // and what it still owes
    std::set<PeerIndex> gone;
    const auto end_load = [&](std::uint32_t expert) {
      if (loading.erase(expert) == 0) return;
      flow.OnLoaded(expert);
      had.insert(expert);
    };
    for (int step = 0; step < 300 && had.size() + given_up.size() < asked.size(); ++step) {
      for (CallToSend& call : flow.TakeCalls(now)) {
        ASSERT_FALSE(gone.contains(call.peer)) << "a lost peer is asked";
        const std::set<std::uint32_t> owes(call.experts.begin(), call.experts.end());
        open.emplace_back(std::move(call), owes);
      }
      for (const std::uint32_t expert : flow.TakeToLoad()) {
        const bool fails = failed.contains(expert);
        (fails ? given_up : loading).insert(expert);
        if (fails) flow.OnLoaded(expert);  // the pass ends with an error
      }
      if (!loading.empty() && random() % 4 == 0) {
        const std::uint32_t expert = *loading.begin();
        Peers holders = asked[expert].holders;
        std::erase_if(holders, [&](PeerIndex peer) { return gone.contains(peer); });
        if (random() % 2 == 0 && !holders.empty() && failed.insert(expert).second) {
          loading.erase(expert);
          flow.AskInPlaceOfDisk({.expert = expert, .rows = 1, .holders = holders});
        } else {
          end_load(expert);
        }
      }
      if (open.empty()) continue;
      auto& [call, owes] = open[random() % open.size()];
      switch (random() % 5) {
        case 0:
        case 1:
          if (owes.empty() || gone.contains(call.peer)) break;
          if (flow.OnAnswered(call.call, *owes.begin())) {
            had.insert(*owes.begin());
            loading.erase(*owes.begin());
          }
          owes.erase(owes.begin());
          break;
        case 2:
          if (!gone.contains(call.peer)) flow.OnRefused(call.call);
          owes.clear();
          break;
        case 3:
          if (random() % 4 == 0 && gone.insert(call.peer).second) flow.OnLost(call.peer);
          break;
        case 4:
          if (const auto next = flow.NextTime()) now = std::max(now, *next);
          flow.OnTime(now);
          break;
      }
    }
    for (const std::uint32_t expert : std::set<std::uint32_t>(loading)) end_load(expert);
    EXPECT_EQ(flow.waiting(), 0u);
    EXPECT_EQ(had.size() + given_up.size(), asked.size());
    for (const Asked& one : asked) {
      EXPECT_EQ(had.count(one.expert) + given_up.count(one.expert), 1u);
    }
    all.overtook += flow.counters().overtook;
    all.failed_loads += flow.counters().failed_loads;
  }
  EXPECT_GT(all.overtook, 0u);
  EXPECT_GT(all.failed_loads, 0u);
}

}  // namespace
}  // namespace troupe
