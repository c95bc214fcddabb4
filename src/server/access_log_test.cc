#include "server/access_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::system_clock::time_point kWhen{std::chrono::milliseconds(1'763'904'887'123)};

HttpEnded Ended(std::string path = "/v1/models") {
  return {.peer = "127.0.0.1:5",
          .method = "GET",
          .path = std::move(path),
          .status = 200,
          .bytes = 321,
          .seconds = 0.25,
          .id = "req_1",
          .use = {.model = "tiny", .prompt_tokens = 12, .answer_tokens = 34}};
}

TEST(AccessLine, SaysWhoAskedForWhatAndHowItEnded) {
  EXPECT_EQ(AccessLine(Ended(), kWhen, LogStyle::kText),
            "2025-11-23T13:34:47.123Z 127.0.0.1:5 GET /v1/models 200 321 B 0.250 s answered "
            "req_1 tiny 12 34");
  HttpEnded left = Ended();
  left.how = HttpEnded::How::kLeft;
  const Json json = Json::Parse(AccessLine(left, kWhen, LogStyle::kJson)).value();
  EXPECT_EQ(json.Find("time")->AsString(), "2025-11-23T13:34:47.123Z");
  EXPECT_EQ(json.Find("status")->AsCount(), 200u);
  EXPECT_EQ(json.Find("end")->AsString(), "left");
  EXPECT_EQ(json.Find("id")->AsString(), "req_1");
  EXPECT_EQ(json.Find("model")->AsString(), "tiny");
  EXPECT_EQ(json.Find("answer_tokens")->AsCount(), 34u);
}

TEST(AccessLine, NothingOfARequestBeginsALineOrAField) {
  const HttpEnded ended = Ended("/a b\n2025 root\x1b[31m\\\xFF\"");
  EXPECT_THAT(AccessLine(ended, kWhen, LogStyle::kText),
              HasSubstr(R"( /a\x20b\x0a2025\x20root\x1b[31m\x5c\xff" 200 )"));
  EXPECT_THAT(AccessLine(ended, kWhen, LogStyle::kJson), Not(HasSubstr("\n")));
  EXPECT_THAT(AccessLine({.status = 400}, kWhen, LogStyle::kText), HasSubstr("Z - - - 400 0 B"));
  EXPECT_LT(AccessLine(Ended(std::string(100'000, 'a')), kWhen, LogStyle::kText).size(), 1000u);
}

TEST(AccessLog, ALineIsInTheFileAtTheEnd) {
  const TempFolder folder;
  const std::string path = folder.PathOf("log");
  for (int round = 1; round <= 2; ++round) {  // the second adds to it
    auto log = AccessLog::Open(path, LogStyle::kText).value();
    for (int i = 0; i < 100; ++i) log->Add(Ended());
    log.reset();
    EXPECT_EQ(std::ranges::count(folder.Read("log"), '\n'), 100 * round);
  }
}

TEST(AccessLog, AFileThatWasMovedAwayIsMadeAgain) {
  const TempFolder folder;
  const std::string path = folder.PathOf("log"), moved = folder.PathOf("log.1");
  auto log = AccessLog::Open(path, LogStyle::kJson).value();
  log->Add(Ended("/first"));
  while (log->counters().written == 0) std::this_thread::yield();
  std::filesystem::rename(path, moved);
  log->Add(Ended("/second"));
  log.reset();
  EXPECT_THAT(folder.Read("log.1"), testing::AllOf(HasSubstr("/first"), Not(HasSubstr("/second"))));
  EXPECT_THAT(folder.Read("log"), HasSubstr("/second"));
}

TEST(AccessLog, AFullDiskCostsLinesAndNothingElse) {
  auto log = AccessLog::Open("/dev/full", LogStyle::kText).value();
  for (int i = 0; i < 50; ++i) log->Add(Ended());
  while (log->counters().lost < 50) std::this_thread::yield();
  EXPECT_EQ(log->counters().written, 0u);
  EXPECT_THAT(log->trouble(), HasSubstr("/dev/full: "));
}

TEST(AccessLog, APipeThatNobodyReadsHoldsUpNobody) {
  const TempFolder folder;
  const std::string path = folder.PathOf("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK));
  auto log = AccessLog::Open(path, LogStyle::kText).value();
  for (int i = 0; i < 2000; ++i) log->Add(Ended(std::string(400, 'a')));  // more than a pipe holds
  while (log->counters().lost == 0) std::this_thread::yield();
  EXPECT_GT(log->counters().written, 0u);
}

TEST(AccessLog, APathThatCannotBeOpenedIsNamed) {
  const auto log = AccessLog::Open("/nowhere/log", LogStyle::kText);
  EXPECT_EQ(log.status().code(), Code::kNotFound);
  EXPECT_THAT(log.status().message(), HasSubstr("/nowhere/log: "));
}

}  // namespace
}  // namespace troupe
