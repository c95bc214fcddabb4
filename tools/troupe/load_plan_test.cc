#include "troupe/load_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(LengthRanges, AreTwoNumbersOrOne) {
  EXPECT_EQ(*ParseLengthRange("32..256"), (LengthRange{32, 256}));
  EXPECT_EQ(*ParseLengthRange("64"), (LengthRange{64, 64}));
  for (const char* text : {"", "0", "0..5", "9..8", "3..", "..3", "a..b", "1...2", "-1..2"}) {
    EXPECT_FALSE(ParseLengthRange(text).ok()) << text;
  }
}

TEST(RecordedLengths, AreReadFromColumnsByTheirNames) {
  const auto lengths = ParseLengths(
      "a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16,374,44\r\n\n2023,396,109");
  EXPECT_THAT(lengths.value(),
              ElementsAre(RequestLengths{374, 44}, RequestLengths{.prompt = 396, .answer = 109}));
}

TEST(RecordedLengths, AreReadFromJsonLines) {
  const auto lengths = ParseLengths(
      "a.jsonl", "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500}\n");
  EXPECT_THAT(lengths.value(), ElementsAre(RequestLengths{.prompt = 6758, .answer = 500}));
}

TEST(RecordedLengths, SayWhichLineIsWrong) {
  const std::string head = "ContextTokens,GeneratedTokens\n";
  for (const auto& [text, place] : {std::pair<std::string, const char*>{"", "no lengths"},
                                    {"a,b\n1,2\n", "ContextTokens"},
                                    {head, "no lengths"},
                                    {head + "1,2\n3\n", "line 3"},
                                    {head + "1,0\n", "line 2"},
                                    {head + "1,x\n", "line 2"},
                                    {"{\"input_length\": 0, \"output_length\": 1}", "line 1"},
                                    {"{\"input_length\": 1}", "line 1"}}) {
    const auto lengths = ParseLengths("a.csv", text);
    ASSERT_FALSE(lengths.ok()) << text;
    EXPECT_THAT(lengths.status().message(), HasSubstr(place)) << text;
    EXPECT_THAT(lengths.status().message(), HasSubstr("a.csv")) << text;
  }
}

TEST(PlannedLoad, IsTheSameForASeedAndAnotherForAnother) {
  LoadOptions options{.requests = 50, .lengths = {}, .rate = 3};
  const auto plan = PlanLoad(options);
  EXPECT_EQ(plan, PlanLoad(options));
  options.seed = 2;
  EXPECT_NE(plan, PlanLoad(options));
}

TEST(PlannedLoad, DrawsLengthsOfTheWholeRange) {
  std::set<std::size_t> prompts;
  for (const PlannedRequest& request :
       PlanLoad({.requests = 200, .prompt = {3, 6}, .answer = 9, .lengths = {}})) {
    prompts.insert(request.lengths.prompt);
    EXPECT_EQ(request.lengths.answer, 9u);
    EXPECT_EQ(request.at, 0);
  }
  EXPECT_THAT(prompts, ElementsAre(3, 4, 5, 6));
}

TEST(PlannedLoad, DrawsPairsOfRecordedLengths) {
  std::size_t long_ones = 0;
  for (const PlannedRequest& request :
       PlanLoad({.requests = 100, .lengths = {{10, 1}, {900, 90}}, .context = 512})) {
    long_ones += request.lengths == RequestLengths{512 - 90, 90} ? 1 : 0;
    if (request.lengths.answer == 1) {
      EXPECT_EQ(request.lengths.prompt, 10u);
    }
  }
  EXPECT_GT(long_ones, 20u);  // six deviations from the 50 expected
  EXPECT_LT(long_ones, 80u);
}

TEST(PlannedLoad, ArrivesAtTheRateAsked) {
  const std::size_t count = 10'000;
  const auto plan = PlanLoad({.requests = count, .lengths = {}, .rate = 5});
  double last = 0, squares = 0;
  for (const PlannedRequest& request : plan) {
    ASSERT_GE(request.at, last);
    squares += (request.at - last) * (request.at - last);
    last = request.at;
  }
  // The mean of 10,000 exponential times has a deviation of 1 %, that of their squares 2.2 %.
  EXPECT_NEAR(last / count, 0.2, 6 * 0.01 * 0.2);
  EXPECT_NEAR(squares / count, 2 * 0.2 * 0.2, 6 * 0.023 * 0.08);
}

TEST(PlannedLoad, CountsTheRequestsThatWereCutToTheContext) {
  LoadOptions options{.requests = 100, .lengths = {{10, 1}, {900, 90}, {400, 300}}, .context = 512};
  const auto plan = PlanLoad(options);
  const auto fits = [](const PlannedRequest& request) {
    return request.lengths == RequestLengths{10, 1};
  };
  EXPECT_EQ(CutIn(plan), 100 - static_cast<std::size_t>(std::ranges::count_if(plan, fits)));
  EXPECT_GT(CutIn(plan), 0u);
  options.context = 990;
  EXPECT_EQ(CutIn(PlanLoad(options)), 0u);
  options.context.reset();  // the server does not say
  EXPECT_EQ(CutIn(PlanLoad(options)), 0u);
}

TEST(LengthsThatDoNotFit, AreCutToTheContext) {
  EXPECT_EQ(FitTo({10, 20}, 100), (RequestLengths{10, 20}));
  EXPECT_EQ(FitTo({90, 20}, 100), (RequestLengths{80, 20}));
  EXPECT_EQ(FitTo({90, 80}, 100), (RequestLengths{50, 50}));
  EXPECT_EQ(FitTo({9, 9}, 1), (RequestLengths{1, 1}));
}

}  // namespace
}  // namespace troupe
