#include "server/errands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

namespace troupe {
namespace {

TEST(ErrandsTest, AreDoneInTheirOrderByAThreadOfTheirOwn) {
  std::vector<int> done;
  std::thread::id by;
  Errands errands;
  for (int i = 0; i < 5; ++i) {
    errands.Add([&, i] {
      done.push_back(i);
      by = std::this_thread::get_id();
    });
  }
  errands.Wait();
  EXPECT_THAT(done, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_NE(by, std::this_thread::get_id());
  EXPECT_EQ(errands.counters().done, 5u);
}

TEST(ErrandsTest, NobodyWaitsForThemWhoHasThem) {
  std::promise<void> told;
  bool done = false;
  Errands errands;
  errands.Add([&] {
    told.get_future().wait();
    done = true;
  });
  errands.Add([] {});
  EXPECT_FALSE(done);
  told.set_value();
  errands.Wait();
  EXPECT_TRUE(done);
}

TEST(ErrandsTest, OnesThatHaveOthersAndThoseThatAreLeftAtTheEndAreDone) {
  int done = 0;
  {
    Errands errands;
    errands.Add([&] {
      ++done;
      errands.Add([&] { ++done; });
    });
  }
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace troupe
