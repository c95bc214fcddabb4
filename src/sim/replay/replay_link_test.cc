#include "sim/replay/replay_link.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

std::vector<std::uint32_t> EndedBy(ReplayLink& link, double now) {
  std::vector<ExpertId> ended;
  link.AdvanceTo(now, ended);
  std::vector<std::uint32_t> experts;
  for (const ExpertId id : ended) experts.push_back(id.expert);
  return experts;
}

TEST(ReplayLinkTest, LoadsFollowEachOtherAndTheFirstWaitsOutTheLatency) {
  ReplayLink link(0.5);
  link.Request({0, 1}, 1, true, 10);
  link.Request({0, 2}, 1, true, 10);
  EXPECT_EQ(link.NextEnd(), 11.5);
  EXPECT_TRUE(EndedBy(link, 11).empty());
  EXPECT_EQ(EndedBy(link, 12.5), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(link.NextEnd(), ReplayLink::kNothing);
  EXPECT_EQ(link.busy_seconds(), 2.5);
}

TEST(ReplayLinkTest, DemandsGoBeforePrefetchesThatHaveNotBegun) {
  ReplayLink link(0);
  link.Request({1, 1}, 1, false, 0);  // begins at once
  link.Request({1, 2}, 1, false, 0);
  link.Request({1, 3}, 1, false, 0);
  link.Request({0, 4}, 1, true, 0);
  link.Promote({1, 3});  // asked for before 4 was
  EXPECT_EQ(EndedBy(link, 9), (std::vector<std::uint32_t>{1, 3, 4, 2}));
}

TEST(ReplayLinkTest, CallsOffWhatHasNotBegun) {
  ReplayLink link(0);
  link.Request({1, 1}, 1, false, 0);
  link.Request({1, 2}, 1, false, 0);
  EXPECT_FALSE(link.Cancel({1, 1}));
  EXPECT_TRUE(link.Cancel({1, 2}));
  EXPECT_EQ(EndedBy(link, 9), (std::vector<std::uint32_t>{1}));
}

}  // namespace
}  // namespace troupe
