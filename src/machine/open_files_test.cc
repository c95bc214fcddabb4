#include "machine/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace troupe {
namespace {

class OpenFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    Limit(std::min<rlim_t>(100, before_.rlim_max));
  }
  void TearDown() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

  void Limit(rlim_t soft) {
    const rlimit limit{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t Now() {
    rlimit limit{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
  }

  rlimit before_{};
};

TEST_F(OpenFilesTest, AreAsManyAsWantedAndNoMore) {
  EXPECT_EQ(AllowOpenFiles(120), 120u);
  EXPECT_EQ(Now(), 120u);
}

TEST_F(OpenFilesTest, AreNeverMadeFewer) {
  EXPECT_EQ(AllowOpenFiles(50), 100u);
  EXPECT_EQ(Now(), 100u);
}

TEST_F(OpenFilesTest, AreAsManyAsTheSystemAllowsWhereMoreAreWanted) {
  if (before_.rlim_max == RLIM_INFINITY) GTEST_SKIP() << "the system sets no limit";
  EXPECT_EQ(AllowOpenFiles(before_.rlim_max + 1), before_.rlim_max);
  EXPECT_EQ(Now(), before_.rlim_max);
}

}  // namespace
}  // namespace troupe
