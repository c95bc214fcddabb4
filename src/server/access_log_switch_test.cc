#include "server/access_log_switch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class AccessLogSwitchTest : public testing::Test {
 protected:
  void SetTo(const std::string& name) {
    log_.Set(AccessLog::Open(folder_.PathOf(name), LogStyle::kText).value());
  }
  void End(const std::string& path) { log_.Add({.peer = "::1", .method = "GET", .path = path}); }

  const TempFolder folder_;
  AccessLogSwitch log_;
};

TEST_F(AccessLogSwitchTest, LinesGoToTheLogOfNow) {
  End("/before");
  EXPECT_FALSE(log_.counters().has_value());
  SetTo("one");
  End("/first");
  SetTo("two");
  End("/second");
  log_.Set(nullptr);
  End("/after");
  EXPECT_THAT(folder_.Read("one"), HasSubstr("/first"));
  EXPECT_THAT(folder_.Read("one"), Not(HasSubstr("/second")));
  EXPECT_THAT(folder_.Read("two"), HasSubstr("/second"));
  EXPECT_THAT(folder_.Read("two"), Not(HasSubstr("/after")));
  EXPECT_FALSE(log_.counters().has_value());
}

TEST_F(AccessLogSwitchTest, NoLineIsLostByAChange) {
  constexpr int kLines = 2000;
  SetTo("one");
  {
    const std::jthread adding([this] {
      for (int i = 0; i < kLines; ++i) End("/x");
    });
    for (const char* name : {"two", "one", "two"}) SetTo(name);
  }
  log_.Set(nullptr);
  const std::string all = folder_.Read("one") + folder_.Read("two");
  EXPECT_EQ(std::ranges::count(all, '\n'), kLines);
}

}  // namespace
}  // namespace troupe
