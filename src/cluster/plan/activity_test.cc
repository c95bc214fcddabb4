#include "cluster/plan/activity.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "cluster/plan/aged_activity.h"

namespace troupe {
namespace {

TEST(ActivityCounter, GivesWhatWasCountedSinceTheLastTime) {
  ActivityCounter counter({.layers = 2, .experts = 2});
  counter.Add({1, 0}, 3);
  counter.Add({1, 0}, 1);
  counter.Add({0, 1}, 2);
  EXPECT_EQ(counter.Take(), (std::vector<std::uint32_t>{0, 2, 4, 0}));
  EXPECT_EQ(counter.Take(), (std::vector<std::uint32_t>{0, 0, 0, 0}));
}

TEST(ActivityCounter, LosesNothingWhileItIsTaken) {
  ActivityCounter counter({.layers = 1, .experts = 4});
  std::thread adds([&] {
    for (std::uint32_t i = 0; i < 20'000; ++i) counter.Add({0, i % 4}, 1);
  });
  std::uint64_t all = 0;
  const auto take = [&] {
    const std::vector<std::uint32_t> taken = counter.Take();
    all += std::accumulate(taken.begin(), taken.end(), std::uint64_t{0});
  };
  for (int i = 0; i < 50; ++i) take();
  adds.join();
  take();
  EXPECT_EQ(all, 20'000u);
}

TEST(AgedActivity, HalvesWhatIsAsOldAsItsHalfLife) {
  AgedActivity activity(600);
  EXPECT_TRUE(activity.values().empty());
  const std::uint32_t first[] = {8, 0}, second[] = {1, 2};
  activity.Add(first, 10);
  EXPECT_EQ(activity.values(), (std::vector<double>{8, 0}));
  activity.Add(second, 600);
  EXPECT_EQ(activity.values(), (std::vector<double>{5, 2}));
}

}  // namespace
}  // namespace troupe
