#include "split/own_costs.h"

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
    const Request request = RequestToMeasureBy(vocabulary);
    const auto& prompt = std::get<std::vector<TokenId>>(request.prompt);
    EXPECT_EQ(prompt.size(), kMeasuredPrompt);
    EXPECT_LT(*std::max_element(prompt.begin(), prompt.end()), vocabulary);
    EXPECT_EQ(request.max_tokens, kMeasuredAnswer);
    EXPECT_TRUE(request.ignore_end);
  }
}

}  // namespace
}  // namespace troupe
