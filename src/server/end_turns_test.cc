#include "server/end_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(EndTurns, AFreeTurnGoesToTheEndThatHasFewestAsManyAtATimeAsMayBe) {
  EndTurns turns;
  std::vector<std::string> begun;
  std::deque<EndTurns::Turn> held;
  const auto enter = [&](std::uint64_t end, std::string name) {
    return turns.Enter(end, 2, [&, name](EndTurns::Turn turn) {
      begun.push_back(name);
      held.push_back(std::move(turn));
    });
  };
  for (const char* name : {"a1", "a2", "a3", "a4"}) EXPECT_TRUE(enter(1, name));
  for (const char* name : {"b1", "b2"}) EXPECT_TRUE(enter(2, name));
  EXPECT_THAT(begun, ElementsAre("a1", "a2"));
  EXPECT_EQ(turns.waiting(), 4u);
  const auto end_one = [&] {
    const EndTurns::Turn over = std::move(held.front());
    held.pop_front();
  };
  for (int i = 0; i < 4; ++i) end_one();
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "b1", "a3", "b2", "a4"));
  held.clear();
  EXPECT_TRUE(enter(3, "c1"));
  EXPECT_EQ(begun.back(), "c1") << "all turns are free again";
}

TEST(EndTurns, ShortAnswersOfACalmEndDoNotWaitForLongOnesOfABusyOne) {
  EndTurns turns;
  std::string begun;
  std::multimap<char, EndTurns::Turn> held;
  const auto enter = [&](std::uint64_t end, char name) {
    EXPECT_TRUE(turns.Enter(end, 3, [&, name](EndTurns::Turn turn) {
      begun += name;
      held.emplace(name, std::move(turn));
    }));
  };
  const auto end_one = [&](char name) {
    const EndTurns::Turn over = std::move(held.extract(name).mapped());
  };
  for (int i = 0; i < 9; ++i) enter(1, 'L');  // long
  for (int i = 0; i < 4; ++i) enter(2, 's');
  EXPECT_EQ(begun, "LLL");
  end_one('L');  // the only one that is waited for
  for (int i = 0; i < 3; ++i) end_one('s');
  EXPECT_EQ(begun, "LLLssss");
  EXPECT_EQ(turns.counters().to_fewer, 4u);
  end_one('s');
  EXPECT_EQ(begun, "LLLssssL") << "all turns are for an end that is alone";
  EXPECT_EQ(turns.counters().to_fewer, 4u);
  EXPECT_EQ(turns.counters().at_once, 3u);
  EXPECT_EQ(turns.counters().later, 5u);
  // Each has as many in the long run, whatever its answers take.
  for (int i = 0; i < 4; ++i) enter(2, 'm');
  for (int i = 0; i < 3; ++i) end_one('L');
  EXPECT_EQ(begun, "LLLssssLmLm") << "the third turn is the one's and then the other's";
  for (int i = 0; i < 2; ++i) end_one('m');
  EXPECT_EQ(begun, "LLLssssLmLmLm");
  while (!held.empty()) end_one(held.begin()->first);
}

TEST(EndTurns, TellWhatIsBeforeANewAnswerOfAnEnd) {
  EndTurns turns;
  std::vector<EndTurns::Turn> held;
  for (const std::size_t tokens : {7, 100, 200, 300}) {
    EXPECT_TRUE(turns.Enter(1, 1, {.tokens = tokens},
                            [&](EndTurns::Turn turn) { held.push_back(std::move(turn)); }));
  }
  EXPECT_EQ(turns.Before(1).answers, 3u);
  EXPECT_EQ(turns.Before(1).tokens, 600u);
  EXPECT_EQ(turns.Before(2).answers, 0u) << "it has none, and so the next turn";
  const int who = 0;
  EXPECT_TRUE(turns.Enter(2, 1, {.tokens = 40, .who = &who}, [](EndTurns::Turn) {}));
  EXPECT_TRUE(turns.Enter(2, 1, {.tokens = 50}, [](EndTurns::Turn) {}));
  EXPECT_EQ(turns.Before(2, &who).answers, 0u) << "none of those behind it";
  EXPECT_EQ(turns.Before(2).answers, 4u) << "its own two, and as many of the other one";
  EXPECT_EQ(turns.Before(2).tokens, 390u);
}

TEST(EndTurns, WhoLeavesWaitsNoMoreAndIsNotCalled) {
  EndTurns turns;
  std::deque<EndTurns::Turn> held;
  std::string begun;
  const auto enter = [&](const char* name) {
    EXPECT_TRUE(turns.Enter(1, 1, {.tokens = 10, .who = name}, [&, name](EndTurns::Turn turn) {
      begun += name;
      held.push_back(std::move(turn));
    }));
  };
  static constexpr const char *kA = "a", *kB = "b", *kC = "c";
  for (const char* name : {kA, kB, kC}) enter(name);
  turns.Leave(1, kB);
  turns.Leave(1, kB);
  turns.Leave(1, kA);  // it has its turn
  turns.Leave(2, kC);  // of another end
  EXPECT_EQ(turns.Before(1).answers, 1u);
  EXPECT_EQ(turns.Before(1).tokens, 10u);
  held.pop_front();
  EXPECT_EQ(begun, "ac");
}

TEST(EndTurns, OnlyEndsThatWaitAreRemembered) {
  EndTurns turns;
  std::deque<EndTurns::Turn> held;
  const auto enter = [&](std::uint64_t end) {
    return turns.Enter(end, 1, [&](EndTurns::Turn turn) { held.push_back(std::move(turn)); });
  };
  std::size_t refused = 0;
  for (std::uint64_t end = 1; end <= 5'000; ++end) refused += enter(end) ? 0 : 1;
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(turns.ends(), turns.waiting());
  while (!held.empty()) {
    const EndTurns::Turn over = std::move(held.front());
    held.pop_front();
  }
  EXPECT_EQ(turns.ends(), 0u);
}

TEST(EndTurns, AnEndWithTooManyWaitingIsRefused) {
  EndTurns turns;
  std::deque<EndTurns::Turn> held;
  const auto enter = [&](std::uint64_t end) {
    return turns.Enter(end, 1, [&](EndTurns::Turn turn) { held.push_back(std::move(turn)); });
  };
  EXPECT_TRUE(enter(1));
  std::size_t waiting = 0;
  while (enter(1)) ++waiting;
  EXPECT_EQ(waiting, 64u);
  EXPECT_TRUE(enter(2));
  while (!held.empty()) {
    const EndTurns::Turn over = std::move(held.back());
    held.pop_back();
  }
}

TEST(EndTurns, AnEndHasNoMoreThanItsShareAndAnotherFindsATurnAtOnce) {
  EndTurns turns;
  std::vector<std::string> begun;
  std::deque<EndTurns::Turn> held;
  const auto enter = [&](std::uint64_t end, std::string name, std::size_t size = 1) {
    return turns.Enter(end, /*together=*/4, {.turns = 2, .sizes = 6, .size = size},
                       [&, name](EndTurns::Turn turn) {
                         begun.push_back(name);
                         held.push_back(std::move(turn));
                       });
  };
  const auto end_one = [&] {
    const EndTurns::Turn over = std::move(held.front());
    held.pop_front();
  };
  for (const char* name : {"a1", "a2", "a3", "a4"}) EXPECT_TRUE(enter(1, name));
  EXPECT_THAT(begun, ElementsAre("a1", "a2"));
  EXPECT_TRUE(enter(2, "b1"));
  EXPECT_EQ(begun.back(), "b1");
  end_one();
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "b1", "a3"));
  while (!held.empty()) end_one();
  EXPECT_EQ(begun.back(), "a4");
  EXPECT_EQ(turns.waiting(), 0u);
  // By size: one turn it has whatever that takes, and small ones do not overtake its large ones.
  begun.clear();
  EXPECT_TRUE(enter(1, "large", 9));
  EXPECT_TRUE(enter(1, "next", 5));
  EXPECT_TRUE(enter(1, "small", 1));
  EXPECT_TRUE(enter(2, "b", 6));
  EXPECT_THAT(begun, ElementsAre("large", "b"));
  end_one();
  EXPECT_THAT(begun, ElementsAre("large", "b", "next", "small"));
  held.clear();
}

}  // namespace
}  // namespace troupe
