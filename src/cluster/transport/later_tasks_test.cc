#include "cluster/transport/later_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

TEST(LaterTasks, RunWhenTheirTimeHasComeAndInItsOrder) {
  LaterTasks tasks;
  std::vector<int> ran;
  EXPECT_EQ(tasks.next(), std::nullopt);
  tasks.Add(30, [&] { ran.push_back(30); });
  tasks.Add(10, [&] { ran.push_back(10); });
  tasks.Add(10, [&] { ran.push_back(11); });
  EXPECT_EQ(tasks.next(), 10);
  tasks.RunDue(9);
  EXPECT_THAT(ran, testing::IsEmpty());
  tasks.RunDue(29);
  EXPECT_THAT(ran, testing::ElementsAre(10, 11));
  EXPECT_EQ(tasks.next(), 30);
  tasks.RunDue(30);
  EXPECT_THAT(ran, testing::ElementsAre(10, 11, 30));
  EXPECT_EQ(tasks.next(), std::nullopt);
}

TEST(LaterTasks, ATaskMayAddAnotherOrClearAll) {
  LaterTasks tasks;
  std::vector<int> ran;
  tasks.Add(1, [&] {
    ran.push_back(1);
    tasks.Add(2, [&] { ran.push_back(2); });
    tasks.Add(9, [&] { ran.push_back(9); });
  });
  tasks.RunDue(5);
  EXPECT_THAT(ran, testing::ElementsAre(1, 2));
  tasks.Add(8, [&] { tasks.Clear(); });
  tasks.RunDue(20);
  EXPECT_THAT(ran, testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace troupe
