#include "expert/prefetch/foresight_count.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kMillisecond = 1'000'000;

using Said = std::vector<SaidOfExpert>;

std::vector<ExpertDemand> Demands(std::vector<std::uint32_t> experts) {
  std::vector<ExpertDemand> demands;
  for (const std::uint32_t expert : experts) demands.push_back({.expert = expert, .tokens = 1});
  return demands;
}

TEST(ForesightCount, CountsNeededLoadsByWhatGuessesSaidOfThem) {
  ForesightCount count;
  // Asked at 10 ms. 1: likely two ahead, 5 ms before. 2: only unlikely. 3: unlikely from two ahead,
  // likely from one, 1 ms before. 4: nobody. 5: likely, and resident all the time.
  count.OnLayerAsks(
      Demands({1, 2, 3, 4, 5}),
      Said{{.expert = 1, .ahead = 2, .odds = 0.9, .when = 5 * kMillisecond, .was_absent = true},
           {.expert = 3, .ahead = 2, .odds = 0.4, .when = 5 * kMillisecond, .was_absent = true},
           {.expert = 9, .ahead = 2, .odds = 0.7, .when = 5 * kMillisecond, .was_absent = true},
           {.expert = 2, .ahead = 1, .odds = 0.3, .when = 9 * kMillisecond, .was_absent = true},
           {.expert = 3, .ahead = 1, .odds = 0.6, .when = 9 * kMillisecond, .was_absent = true},
           {.expert = 5, .ahead = 1, .odds = 0.9, .when = 9 * kMillisecond}},
      10 * kMillisecond);
  for (const std::uint32_t expert : {1u, 2u, 3u, 4u}) count.OnFound(expert, /*needed=*/true);
  count.OnFound(5, /*needed=*/false);
  count.OnLoadSeconds(2e-3);
  const Foresight& sums = count.sums();
  EXPECT_EQ(sums.needed, 4u);
  EXPECT_EQ(sums.named, 3u);
  EXPECT_EQ(sums.likely, 2u);
  EXPECT_EQ(sums.in_time, 1u);
  EXPECT_EQ(sums.from[0], (ForesightFrom{.named = 2, .likely = 1, .guesses = 1, .came_true = 1}));
  EXPECT_EQ(sums.from[1], (ForesightFrom{.named = 2, .likely = 1, .guesses = 2, .came_true = 1}));
  EXPECT_EQ(sums.from[2], ForesightFrom());
}

TEST(ForesightCount, TheFirstLikelyGuessSaysHowLongItWasKnown) {
  ForesightCount count;
  const auto asked = [&](double load_seconds) {
    count.OnLayerAsks(
        Demands({1}),
        Said{{.expert = 1, .ahead = 3, .odds = 0.4, .when = 1 * kMillisecond, .was_absent = true},
             {.expert = 1, .ahead = 2, .odds = 0.5, .when = 4 * kMillisecond, .was_absent = true},
             {.expert = 1, .ahead = 1, .odds = 0.9, .when = 9 * kMillisecond, .was_absent = true}},
        10 * kMillisecond);
    count.OnFound(1, true);
    count.OnLoadSeconds(load_seconds);
    return count.sums().in_time;
  };
  EXPECT_EQ(asked(6e-3), 1u);
  EXPECT_EQ(asked(6.1e-3), 1u);  // it was not in time
  EXPECT_EQ(asked(0), 1u);       // nobody knows
  const MissForesight told = count.Of(1);
  EXPECT_EQ(told.ahead, 2u);
  EXPECT_EQ(told.odds, 0.5);
  EXPECT_EQ(told.lead_seconds, 6e-3);
  EXPECT_FALSE(told.taken_back);
}

TEST(ForesightCount, AnExpertCountsOnceALayerAndOnlyIfThePassAskedForIt) {
  ForesightCount count;
  count.OnLayerAsks(Demands({1}), {}, 0);
  count.OnFound(7, true);  // a peer's
  count.OnFound(1, true);
  count.OnFound(1, true);  // a peer's, of the same one
  EXPECT_EQ(count.sums().needed, 1u);
  count.OnLayerAsks(Demands({1}), {}, 0);
  count.OnOtherPass();
  count.OnFound(1, true);
  EXPECT_EQ(count.sums().needed, 1u);
}

TEST(ForesightCount, AGuessThatTheLastOneDoesNotRepeatIsTakenBack) {
  ForesightCount count;
  count.OnLayerAsks(Demands({1}),
                    Said{{.expert = 1, .ahead = 2, .odds = 0.9, .when = 0, .was_absent = true},
                         {.expert = 2, .ahead = 1, .odds = 0.9, .when = 1, .was_absent = true}},
                    2);
  EXPECT_TRUE(count.Of(1).taken_back);
  EXPECT_EQ(count.Of(3).ahead, 0u);
}

}  // namespace
}  // namespace troupe
