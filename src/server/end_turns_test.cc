#include "server/end_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(EndTurns, OneOfEachEndInTurnAsManyAtATimeAsMayBe) {
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
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "a3", "b1", "a4", "b2"));
  held.clear();
  EXPECT_TRUE(enter(3, "c1"));
  EXPECT_EQ(begun.back(), "c1") << "all turns are free again";
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

}  // namespace
}  // namespace troupe
