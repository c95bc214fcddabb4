#include "runtime/batch_forecast.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(BatchForecast, KnowsNothingBeforeTheFirstPass) {
  EXPECT_EQ(ForecastOf({}, 4, 100), BatchForecast());
}

TEST(BatchForecast, OfAFreePlaceIsWhatPassesTake) {
  const BatchCounters counters{
      .reading = 1, .decoding = 2, .exact_speed = RowSpeed::Even(0.5, 0.25), .request_seconds = 8};
  EXPECT_EQ(ForecastOf(counters, 4, 100),
            (BatchForecast{.wait_seconds = 0, .read_seconds = 0.25, .token_seconds = 1.5}));
}

TEST(BatchForecast, APromptBehindOthersIsReadAsFastAsTheyAreOfLate) {
  BatchCounters counters{.read_seconds = 0.75, .exact_speed = RowSpeed::Even(0.5, 0.25)};
  EXPECT_EQ(ForecastOf(counters, 4, 100).read_seconds, 0.25);
  counters.to_read = 1;
  EXPECT_EQ(ForecastOf(counters, 4, 100).read_seconds, 0.75);
}

TEST(BatchForecast, WaitsForAllWhoAreBeforeItWhereAllPlacesAreTaken) {
  const BatchCounters counters{.waiting = 3, .decoding = 2, .request_seconds = 8};
  EXPECT_EQ(ForecastOf(counters, 2, 100).wait_seconds, 16);
}

}  // namespace
}  // namespace troupe
