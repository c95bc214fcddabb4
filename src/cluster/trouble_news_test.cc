#include "cluster/trouble_news.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kNewsSecond = 1'000'000'000;

TEST(TroubleNews, AFullDiskIsToldOnceAndSoIsItsEndThoughALineFindsRoomNowAndThen) {
  TroubleNews news;
  EXPECT_EQ(news.Look("", 0), "");
  EXPECT_EQ(news.Look("log: full", kNewsSecond),
            "requests go on without their lines in the log: log: full");
  for (int i = 2; i < 60; ++i) {
    EXPECT_EQ(news.Look(i % 3 == 0 ? "" : "log: full", i * kNewsSecond), "") << i;
  }
  for (int i = 60; i < 69; ++i) EXPECT_EQ(news.Look("", i * kNewsSecond), "") << i;
  EXPECT_EQ(news.Look("", 69 * kNewsSecond), "the log of requests is written again");
  EXPECT_EQ(news.Look("", 90 * kNewsSecond), "");
  EXPECT_NE(news.Look("log: full", 91 * kNewsSecond), "");
}

}  // namespace
}  // namespace troupe
