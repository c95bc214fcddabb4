#include "split/own_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>
#include <vector>

namespace troupe {
namespace {

// A token of a prompt takes a millisecond, one of an answer two.
BatchCounters Measured() {
  BatchCounters counters;
  for (const double rows : {1.0, 16.0, 64.0, 256.0}) {
    counters.exact_speed.prompt.Note(rows, rows * 1e-3);
    counters.exact_speed.decode.Note(rows, rows * 2e-3);
  }
  return counters;
}

Plan FourAtATime() {
  Plan plan;
  plan.sequences = 4;
  plan.pass_rows = 256;
  return plan;
}

TEST(OwnCosts, AreUnknownUntilSomethingWasMeasured) {
  EXPECT_FALSE(OwnCostsOf({}, FourAtATime(), 100, {}));
}

TEST(OwnCosts, APromptWaitsForTheTokensOfThoseThatAreReadBeforeIt) {
  const PlaceCosts alone = OwnCostsOf(Measured(), FourAtATime(), 100, {.exact_only = true}).value();
  const PlaceCosts behind =
      OwnCostsOf(Measured(), FourAtATime(), 100, {.exact_only = true, .ahead = 1000}).value();
  EXPECT_EQ(alone.wait_seconds, 0);
  EXPECT_NEAR(behind.wait_seconds, 1, 0.1);
  EXPECT_EQ(behind.read_seconds, alone.read_seconds);
}

TEST(OwnCosts, ASequenceIsWaitedForBehindThoseThatTheBatchDoesNotKnowYet) {
  BatchCounters counters = Measured();
  counters.request_seconds = 2;
  const auto behind = [&](std::size_t runs) {
    return OwnCostsOf(counters, FourAtATime(), 100, {.exact_only = true, .runs = runs})
        ->wait_seconds;
  };
  EXPECT_EQ(behind(3), 0);
  EXPECT_EQ(behind(4), 0.5);
  EXPECT_EQ(behind(11), 4);
}

TEST(OwnCosts, AreMeasuredByATextOfTokensThatTheModelHas) {
  for (const std::size_t vocabulary : {40, 7919, 150'000}) {
    for (const std::uint64_t text : {1, 2, 30'000}) {
      const Request request = RequestToMeasureBy(vocabulary, 256, text);
      const auto& prompt = std::get<std::vector<TokenId>>(request.prompt);
      EXPECT_EQ(prompt.size(), 256u);
      EXPECT_LT(*std::max_element(prompt.begin(), prompt.end()), vocabulary);
      EXPECT_EQ(request.max_tokens, kMeasuredAnswer);
      EXPECT_TRUE(request.ignore_end);
    }
    EXPECT_NE(RequestToMeasureBy(vocabulary, 32, 1).cache_salt,
              RequestToMeasureBy(vocabulary, 32, 2).cache_salt);
  }
}

TEST(OwnCosts, AreMeasuredByAShortAndALongTextAsFarAsThereIsRoom) {
  const auto prompts = [](std::uint32_t context, std::uint32_t rows) {
    Plan plan;
    plan.context = context;
    plan.pass_rows = rows;
    return PromptsToMeasureBy(plan);
  };
  EXPECT_THAT(prompts(4096, 512), testing::ElementsAre(32, 32, 256));
  EXPECT_THAT(prompts(96, 512), testing::ElementsAre(32, 32, 92));
  EXPECT_THAT(prompts(4096, 64), testing::ElementsAre(32, 32, 64));
  EXPECT_THAT(prompts(4096, 48), testing::ElementsAre(32, 32)) << "too alike";
  EXPECT_THAT(prompts(24, 512), testing::ElementsAre(20, 20));
}

// An end that was measured by 32 rows alone would take a pass of 256 for eight times as long.
TEST(OwnCosts, OfALongPromptFollowFromAShortAndALongOne) {
  BatchCounters counters;
  counters.exact_speed.decode.Note(1, 0.1);
  counters.exact_speed.prompt.Note(32, 0.8);
  counters.exact_speed.prompt.Note(256, 1.28);
  const PlaceCosts costs = OwnCostsOf(counters, FourAtATime(), 256, {.exact_only = true}).value();
  EXPECT_NEAR(costs.read_seconds, 1.28 / 256, 1e-9);
}

}  // namespace
}  // namespace troupe
