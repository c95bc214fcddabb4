#include "base/fair_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace troupe {
namespace {

std::string Drain(FairQueue<std::string>& queue) {
  std::string all;
  while (const auto next = queue.Next()) all += *next + " ";
  return all;
}

TEST(FairQueue, TakesOneOfEachPeerInTurn) {
  FairQueue<std::string> queue(10, 100);
  for (const char* call : {"a1", "a2", "a3"}) EXPECT_TRUE(queue.Add(1, call));
  EXPECT_TRUE(queue.Add(2, "b1"));
  EXPECT_TRUE(queue.Add(9, "c1"));
  EXPECT_TRUE(queue.Add(9, "c2"));
  EXPECT_EQ(queue.size(), 6u);
  EXPECT_EQ(Drain(queue), "a1 b1 c1 a2 c2 a3 ");
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueue, KnowsWhichCallsComeBeforeANewOne) {
  FairQueue<std::string> queue(10, 100);
  const auto before = [&queue](std::uint64_t peer, std::string_view call = "a new one") {
    std::string calls;
    queue.VisitBefore(
        peer, [call](const std::string& one) { return one == call; },
        [&calls](const std::string& one) { calls += one + " "; });
    return calls;
  };
  EXPECT_EQ(before(1), "");
  for (const char* call : {"a1", "a2", "a3"}) EXPECT_TRUE(queue.Add(1, call));
  EXPECT_TRUE(queue.Add(2, "b1"));
  EXPECT_EQ(before(1), "a1 a2 a3 b1 ");
  EXPECT_EQ(before(2), "a1 a2 b1 ");
  EXPECT_EQ(before(3), "a1 b1 ");
  EXPECT_EQ(before(1, "a1"), "b1 ");
  EXPECT_EQ(before(1, "a3"), "a1 a2 b1 ");
  EXPECT_EQ(before(2, "b1"), "a1 ");
}

TEST(FairQueue, OfThoseOfTheLowestRankEachHasItsTurn) {
  FairQueue<std::string> queue(10, 100);
  for (const char* call : {"a1", "a2"}) EXPECT_TRUE(queue.Add(1, call));
  for (const char* call : {"b1", "b2"}) EXPECT_TRUE(queue.Add(2, call));
  EXPECT_TRUE(queue.Add(3, "c1"));
  std::map<std::uint64_t, std::size_t> rank = {{1, 2}, {2, 1}, {3, 1}};
  const auto next = [&] {
    return queue
        .Next([](std::uint64_t peer, const std::string&) { return peer < 3; },
              [&rank](std::uint64_t peer) { return rank[peer]; })
        .value_or("none");
  };
  EXPECT_EQ(next(), "b1") << "3 may not come";
  rank[2] = 2;
  queue.HadTurn(1);
  EXPECT_EQ(next(), "b2");
  EXPECT_EQ(next(), "a1");
  EXPECT_EQ(next(), "a2");
  EXPECT_EQ(next(), "none");
}

TEST(FairQueue, KnowsWhatComesBeforeWherePeersHaveSomeAlready) {
  FairQueue<std::string> queue(10, 100);
  for (const char* call : {"a1", "a2", "a3"}) EXPECT_TRUE(queue.Add(1, call));
  for (const char* call : {"b1", "b2"}) EXPECT_TRUE(queue.Add(2, call));
  std::map<std::uint64_t, std::size_t> have = {{1, 2}, {2, 0}, {3, 1}};
  const auto before = [&](std::uint64_t peer) {
    std::string calls;
    queue.VisitBefore(
        peer, [](const std::string&) { return false; },
        [&calls](const std::string& one) { calls += one + " "; },
        [&have](std::uint64_t who) { return have[who]; });
    return calls;
  };
  EXPECT_EQ(before(1), "a1 a2 a3 b1 b2 ");
  EXPECT_EQ(before(2), "a1 b1 b2 ") << "its third, when it has as many as the other has";
  EXPECT_EQ(before(3), "b1 b2 ");
}

TEST(FairQueue, ThePeerWhoseTurnItWasComesLast) {
  FairQueue<std::string> queue(10, 100);
  EXPECT_TRUE(queue.Add(5, "a1"));
  EXPECT_EQ(queue.Next(), "a1");
  EXPECT_TRUE(queue.Add(5, "a2"));
  EXPECT_TRUE(queue.Add(3, "b1"));
  EXPECT_EQ(Drain(queue), "b1 a2 ");
}

TEST(FairQueue, TheTurnIsOfThePeerThatWasChargedLeast) {
  FairQueue<std::string> queue(10, 100);
  for (const char* call : {"a1", "a2"}) EXPECT_TRUE(queue.Add(1, call));
  for (const char* call : {"b1", "b2", "b3", "b4"}) EXPECT_TRUE(queue.Add(2, call));
  EXPECT_EQ(queue.Next(), "a1");
  queue.Charge(1, 25);
  for (const char* call : {"b1", "b2", "b3"}) {
    EXPECT_EQ(queue.Next(), call);
    queue.Charge(2, 10);
  }
  EXPECT_TRUE(queue.Add(3, "c1"));  // who comes now is owed nothing from before
  EXPECT_TRUE(queue.Add(3, "c2"));
  EXPECT_EQ(queue.Next(), "c1");
  queue.Charge(3, 10);
  EXPECT_EQ(Drain(queue), "a2 b4 c2 ");
}

TEST(FairQueue, TheRestOfACallComesBeforeThePeersOthersAndAfterOtherPeers) {
  FairQueue<std::string> queue(2, 6);
  EXPECT_TRUE(queue.Add(1, "a1"));
  EXPECT_TRUE(queue.Add(1, "a2"));
  EXPECT_TRUE(queue.Add(2, "b1"));
  EXPECT_EQ(queue.Next(), "a1");
  queue.Charge(1, 5);
  queue.PutBack(1, "a1");
  EXPECT_FALSE(queue.Add(1, "a3"));
  EXPECT_EQ(Drain(queue), "b1 a1 a2 ");
}

TEST(FairQueue, APeerMayHaveNoMoreWaitingThanFit) {
  FairQueue<std::string> queue(2, 100);
  EXPECT_TRUE(queue.Add(1, "a1"));
  EXPECT_TRUE(queue.Add(1, "a2"));
  EXPECT_FALSE(queue.Add(1, "a3"));
  EXPECT_TRUE(queue.Add(2, "b1"));  // that is nobody else's loss
  EXPECT_EQ(Drain(queue), "a1 b1 a2 ");
}

TEST(FairQueue, AllCallsTogetherHaveALimitToo) {
  FairQueue<std::string> queue(9, 6);
  EXPECT_TRUE(queue.Add(1, "a1"));
  EXPECT_TRUE(queue.Add(2, "b1"));
  EXPECT_TRUE(queue.Add(3, "c1"));
  EXPECT_FALSE(queue.Add(4, "d"));
  EXPECT_EQ(queue.Next(), "a1");
  EXPECT_TRUE(queue.Add(4, "d1"));
  EXPECT_FALSE(queue.Add(4, "d"));
  queue.Forget(2);
  EXPECT_EQ(queue.TakeOut(3, [](const std::string&) { return true; }), "c1");
  EXPECT_TRUE(queue.Add(4, "4444"));
  EXPECT_FALSE(queue.Add(4, "d"));
}

TEST(FairQueue, PeersWhoseCallMayNotComeNowArePassedOverAndKeepTheirTurn) {
  FairQueue<std::string> queue(9, 100);
  EXPECT_FALSE(queue.Waits(1));
  for (const char* call : {"a1", "a2"}) EXPECT_TRUE(queue.Add(1, call));
  EXPECT_TRUE(queue.Add(2, "b1"));
  EXPECT_TRUE(queue.Waits(1));
  const auto not_of_1 = [](std::uint64_t peer, const std::string&) { return peer != 1; };
  EXPECT_EQ(queue.Next(not_of_1), "b1");
  EXPECT_EQ(queue.Next(not_of_1), std::nullopt);
  EXPECT_EQ(queue.size(), 2u);
  const auto is_a1 = [](std::uint64_t, const std::string& call) { return call == "a1"; };
  EXPECT_EQ(queue.Next(is_a1), "a1");
  EXPECT_EQ(queue.Next(is_a1), std::nullopt);
  EXPECT_EQ(Drain(queue), "a2 ");
}

TEST(FairQueue, CallsCanBeTakenOutAndPeersForgotten) {
  FairQueue<std::string> queue(9, 100);
  for (const char* call : {"a1", "a2", "a1"}) EXPECT_TRUE(queue.Add(1, call));
  EXPECT_TRUE(queue.Add(2, "b1"));
  const auto is_a1 = [](const std::string& call) { return call == "a1"; };
  EXPECT_EQ(queue.TakeOut(1, is_a1), "a1");
  EXPECT_EQ(queue.TakeOut(1, is_a1), "a1");
  EXPECT_EQ(queue.TakeOut(1, is_a1), std::nullopt);
  EXPECT_EQ(queue.TakeOut(7, [](const std::string&) { return true; }), std::nullopt);
  EXPECT_EQ(queue.size(), 2u);
  queue.Forget(1);
  queue.Forget(8);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(Drain(queue), "b1 ");
}

}  // namespace
}  // namespace troupe
