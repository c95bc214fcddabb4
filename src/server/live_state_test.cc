#include "server/live_state.h"

#include <gmock/gmock.h>

#include "base/json.h"

namespace troupe {
namespace {

TEST(LiveState, FactsNameThePartsOfTheBudgetThatHoldSomething) {
  Plan plan{.threads = 2, .context = 512, .sequences = 4};
  plan.budget = Bytes(1000);
  plan.experts = Bytes(600);
  plan.dense = Bytes(200);
  plan.experts_in_memory = 30;
  plan.experts_in_all = 64;
  plan.lossiness = "exact";
  const Json facts = Json::Parse(LiveFacts("tiny", plan, /*is_node=*/true)).value();
  EXPECT_EQ(facts.Find("model")->AsString(), "tiny");
  EXPECT_EQ(facts.Find("context")->AsCount(), 512u);
  EXPECT_EQ(facts.Find("experts_in_memory")->AsCount(), 30u);
  EXPECT_EQ(facts.Find("experts")->AsCount(), 64u);
  EXPECT_TRUE(facts.Find("cluster")->AsBool());
  EXPECT_EQ(facts.Find("memory")->Dump(),
            R"({"budget":1000,"parts":[{"name":"experts","bytes":600},)"
            R"({"name":"dense weights","bytes":200}]})");
}

TEST(LiveState, TellsEachExpertByAPlaceAndALevelOfHeat) {
  ModelState state;
  state.experts = {
      .layers = 2,
      .layer_numbers = {1, 3},
      .experts = 3,
      .places = {ExpertPlace::kAbsent, ExpertPlace::kLoading, ExpertPlace::kInMemory,
                 ExpertPlace::kLowInMemory, ExpertPlace::kInMemory, ExpertPlace::kAbsent},
      .heat = {0, 1, 0.25f, 1e-4f, 0.04f, 2}};
  const Json told = Json::Parse(LiveState({}, state, {})).value();
  EXPECT_EQ(told.Find("experts")->Dump(),
            R"({"layers":2,"layer_numbers":[1,3],"experts":3,"places":["012","320"],)"
            R"("heat":["0f8","13f"]})");
}

TEST(LiveState, TellsRequestsAndSums) {
  Metrics metrics;
  metrics.requests_reading = 1;
  metrics.generated_tokens = 77;
  metrics.experts.stall_seconds = 1.5;
  ModelState state;
  state.requests = {{.id = 5,
                     .stage = RequestState::Stage::kReading,
                     .prompt_tokens = 900,
                     .prompt_read = 256,
                     .seconds = 2.5}};
  const LiveTimes times{
      .now = 12.5, .first_token = {}, .between_tokens = {.count = 3, .p50 = 0.1, .p99 = 0.4}};
  const Json told = Json::Parse(LiveState(metrics, state, times)).value();
  EXPECT_EQ(told.Find("seconds")->AsDouble(), 12.5);
  EXPECT_EQ(told.Find("requests_now")->Dump(), R"({"waiting":0,"reading":1,"decoding":0})");
  EXPECT_EQ(told.Find("sums")->Find("generated_tokens")->AsCount(), 77u);
  EXPECT_EQ(told.Find("sums")->Find("stall_seconds")->AsDouble(), 1.5);
  EXPECT_EQ(told.Find("first_token")->Find("count")->AsCount(), 0u);
  EXPECT_EQ(told.Find("between_tokens")->Dump(), R"({"count":3,"p50":0.1,"p99":0.4})");
  EXPECT_EQ(told.Find("requests")->Dump(),
            R"([{"id":5,"stage":"reading","prompt":900,"read":256,"generated":0,"seconds":2.5}])");
}

TEST(LiveState, TellsACardWithWhatItHoldsAndHasDone) {
  Metrics metrics;
  EXPECT_TRUE(Json::Parse(LiveState(metrics, {}, {}))->Find("card")->IsNull());
  metrics.card = {.name = "RTX 3060", .slots = 40, .held = 31, .memory = Bytes(5000)};
  metrics.experts.card_hits = 6;
  metrics.experts.card_rows = 7;
  metrics.experts.card_copies = 33;
  const auto told = [&metrics] {
    return Json::Parse(LiveState(metrics, {}, {}))->Find("card")->Dump();
  };
  EXPECT_EQ(told(), R"({"name":"RTX 3060","slots":40,"held":31,"bytes":5000,"hits":6,"rows":7,)"
                    R"("copies":33,"failed":false})");
  metrics.experts.card_failures = 1;
  EXPECT_THAT(told(), testing::HasSubstr(R"("failed":true)"));
}

TEST(LiveState, AModelWithoutExpertsHasAnEmptyMap) {
  const Json told = Json::Parse(LiveState({}, {}, {})).value();
  EXPECT_EQ(told.Find("experts")->Find("places")->size(), 0u);
}

}  // namespace
}  // namespace troupe
