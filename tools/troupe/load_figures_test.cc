#include "troupe/load_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(LoadTimes, ArePercentilesThatOneOfTheTimesIs) {
  std::vector<double> times(200);
  std::iota(times.rbegin(), times.rend(), 1.0);  // 200 … 1
  const TimeSummary summary = Summarize(times);
  EXPECT_EQ(summary.count, 200u);
  EXPECT_EQ(summary.p50, 100);
  EXPECT_EQ(summary.p90, 180);
  EXPECT_EQ(summary.p99, 198);
  EXPECT_EQ(summary.max, 200);
}

TEST(LoadTimes, OfFewAreRoundedUpAndOfNoneAreZero) {
  EXPECT_EQ(Summarize({3, 1, 2}).p50, 2);
  EXPECT_EQ(Summarize({3, 1, 2}).p90, 3);
  EXPECT_EQ(Summarize({5}).p50, 5);
  EXPECT_EQ(Summarize({}).count, 0u);
  EXPECT_EQ(Summarize({}).max, 0);
}

std::vector<SeenAnswer> ThreeAnswers() {
  std::vector<SeenAnswer> answers(3);
  answers[0] = {
      .late = 0.05, .first = 0.1, .whole = 1, .gaps = {0.2, 0.3}, .prompt_tokens = 10, .tokens = 3};
  answers[1] = {.status = DataLoss("cut off"),
                .late = 0.07,
                .first = 9,
                .whole = 9,
                .gaps = {9},
                .tokens = 9};
  answers[2] = {.first = 0.2, .whole = 2, .gaps = {0.4}, .prompt_tokens = 20, .tokens = 2};
  return answers;
}

TEST(LoadFiguresOfAnswers, LeaveOutThoseThatFailed) {
  const LoadFigures figures = FiguresOf(ThreeAnswers(), 2);
  EXPECT_EQ(figures.requests, 3u);
  EXPECT_EQ(figures.failed, 1u);
  EXPECT_EQ(figures.first_failure, "cut off");
  EXPECT_EQ(figures.TokensPerSecond(), 2.5);
  EXPECT_EQ(figures.PromptTokensPerSecond(), 15);
  EXPECT_EQ(figures.first.max, 0.2);
  EXPECT_EQ(figures.gap.count, 3u);
  EXPECT_EQ(figures.gap.p50, 0.3);
  EXPECT_EQ(figures.whole.max, 2);
}

TEST(LoadFiguresOfAnswers, SayHowLateRequestsWereSentAlsoThoseThatFailed) {
  LoadFigures figures = FiguresOf(ThreeAnswers(), 2);
  EXPECT_EQ(figures.late.count, 3u);
  EXPECT_EQ(figures.late.p50, 0.05);
  EXPECT_THAT(LoadTable(figures), HasSubstr("sent late by                   50.0       70.0"));
  EXPECT_EQ(LoadRecord(figures).Find("sent_late_s")->Find("max")->AsDouble(), 0.07);
  figures.late = {.count = 3};  // clients that send when they are free are never late
  EXPECT_THAT(LoadTable(figures), Not(HasSubstr("sent late")));
}

TEST(LoadFiguresOfAnswers, SayHowManyRequestsWereCutToTheContext) {
  LoadFigures figures = FiguresOf(ThreeAnswers(), 2);
  EXPECT_EQ(LoadRecord(figures).Find("cut_to_context")->AsCount(), 0u);
  figures.cut = 2;
  EXPECT_EQ(LoadRecord(figures).Find("cut_to_context")->AsCount(), 2u);
}

TEST(LoadFiguresOfAnswers, AreATableAndARecordOfTheSame) {
  const LoadFigures figures = FiguresOf(ThreeAnswers(), 2);
  const std::string table = LoadTable(figures);
  EXPECT_THAT(table,
              StartsWith("2 requests answered in 2.00 s, 2.5 tokens/s; the first token of an "
                         "answer after "));
  EXPECT_THAT(table, HasSubstr("        3       1      2.00        2.5             15.0\n"));
  EXPECT_THAT(table, HasSubstr("between tokens                300.0      400.0      400.0"));
  const Json record = LoadRecord(figures);
  EXPECT_EQ(record.Find("tokens_per_s")->AsDouble(), 2.5);
  EXPECT_EQ(record.Find("time_between_tokens_s")->Find("p50")->AsDouble(), 0.3);
  EXPECT_EQ(record.Find("first_failure")->AsString(), "cut off");
  EXPECT_TRUE(LoadRecord(FiguresOf({}, 0)).Find("first_failure")->IsNull());
  EXPECT_EQ(FiguresOf({}, 0).TokensPerSecond(), 0);
}

}  // namespace
}  // namespace troupe
