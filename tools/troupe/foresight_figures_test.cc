#include "troupe/foresight_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

// From the top: 7 of 10 likely ones were asked for, 2 of 10 others, and 1 that nobody thought of.
ChanceHistogram TenMisses() {
  ChanceHistogram histogram;
  for (int i = 0; i < 10; ++i) histogram.Count(80, i < 7);
  for (int i = 0; i < 10; ++i) histogram.Count(40, i < 2);
  histogram.Count(0, true);
  return histogram;
}

TEST(RecallFigures, TellEachDistanceThatMissedSomething) {
  JudgedChances chances;
  EXPECT_EQ(RecallFigures(chances), "");
  chances.same_token[2] = TenMisses();
  EXPECT_EQ(
      RecallFigures(chances),
      "\n    misses of the same token predicted, % at a precision of 70, 60, 50 %: 3 layers 70.0, "
      "70.0, 70.0");
  chances.same_token[0].Count(99, true);
  chances.next_token[0].Count(99, true);
  EXPECT_THAT(RecallFigures(chances), HasSubstr("1 layer 100.0, 100.0, 100.0; 3 layers 70.0"));
  EXPECT_THAT(RecallFigures(chances), HasSubstr("\n    misses of the next token predicted"));
  EXPECT_THAT(RecallFigures(chances), Not(HasSubstr("2 layers")));
}

TEST(RecallFigures, TheRecordHasWhatTheyAreMadeOf) {
  JudgedChances chances;
  chances.same_token[2] = TenMisses();
  const std::string json = ToJson(chances).Dump();
  EXPECT_THAT(json, HasSubstr(R"("misses":10,"at_70":0.7,"at_60":0.7,"at_50":0.7,"said":[1,0,)"));
  EXPECT_THAT(json, HasSubstr("\"next_token\":[{\"misses\":0"));
}

}  // namespace
}  // namespace troupe
