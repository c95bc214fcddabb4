#include "troupe/split_record.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(SplitRecord, SaysWhatATokenTakesInEachPlaceAsFarAsThatWasMeasured) {
  EndState state;
  EXPECT_EQ(RecordOf(state).Find("token_s")->Dump(), R"({"end":null,"cloud":null})");
  state.end = PlaceCosts{.token_seconds = 0.5};
  EXPECT_EQ(RecordOf(state).Find("token_s")->Dump(), R"({"end":0.5,"cloud":null})");
  state.cloud_costs = PlaceCosts{.token_seconds = 0.125};
  EXPECT_EQ(RecordOf(state).Find("token_s")->Dump(), R"({"end":0.5,"cloud":0.125})");
}

}  // namespace
}  // namespace troupe
