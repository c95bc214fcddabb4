#include "server/passed_over.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/log.h"

namespace troupe {
namespace {

std::vector<std::string> WarningsOf(const std::function<void()>& call) {
  std::vector<std::string> lines;
  SetWarningSink([&lines](std::string_view line) { lines.emplace_back(line); });
  call();
  SetWarningSink({});
  return lines;
}

TEST(PassedOver, EachKindIsLoggedOnceAndEveryRequestIsCounted) {
  PassedOver passed;
  const std::vector<std::string> tool = {"a tool of type 'computer'"};
  const auto lines = WarningsOf([&] {
    for (int i = 0; i < 3; ++i) passed.Tell(tool);
    passed.Tell({});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("a tool of type 'computer'"), std::string::npos);
  EXPECT_EQ(passed.requests(), 3u);
}

TEST(PassedOver, NobodyCanFillTheLog) {
  PassedOver passed;
  const auto lines = WarningsOf([&] {
    for (int i = 0; i < 1000; ++i) passed.Tell(std::vector{std::to_string(i)});
  });
  EXPECT_EQ(lines.size(), 64u);
  EXPECT_EQ(passed.requests(), 1000u);
}

}  // namespace
}  // namespace troupe
