#include "expert/flow/guessed_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What was told: layer, sequence, experts.
using ToldRoute = std::tuple<std::uint32_t, SequenceId, std::vector<std::uint32_t>>;

std::vector<ToldRoute> SettleThem(GuessedRoutes& routes, std::vector<std::uint32_t> right) {
  std::vector<ToldRoute> told;
  routes.Settle(right, [&](const LayerChoices& choices) {
    ASSERT_EQ(choices.by_sequence().size(), 1u);
    const SequenceDemands& of = choices.by_sequence().front();
    std::vector<std::uint32_t> experts;
    for (const ExpertDemand& demand : of.demands) experts.push_back(demand.expert);
    told.emplace_back(choices.layer(), of.sequence, experts);
  });
  return told;
}

std::vector<ExpertChoice> ChosenBy(std::vector<std::uint32_t> experts) {
  std::vector<ExpertChoice> chosen;
  for (const std::uint32_t expert : experts) chosen.push_back({.expert = expert, .weight = 1});
  return chosen;
}

TEST(GuessedRoutes, AreToldRowAfterRowAsFarAsTheyWereRight) {
  GuessedRoutes routes;
  routes.OnPassBegins({.groups = {{.sequence = 3, .rows = 3, .guessed = 2},
                                  {.sequence = 5, .rows = 1},
                                  {.sequence = 1, .rows = 2, .guessed = 1}}});
  ASSERT_TRUE(routes.any());
  routes.Keep(2, ChosenBy({0, 1, 7, 6, 4, 5, 0, 1, 0, 1, 8, 9}));
  routes.Keep(4, ChosenBy({0, 1, 2, 3, 5, 4, 0, 1, 0, 1, 6, 7}));
  EXPECT_THAT(
      SettleThem(routes, {2, 0, 1}),
      ElementsAre(ToldRoute(2, 3, {6, 7}), ToldRoute(4, 3, {2, 3}), ToldRoute(2, 3, {4, 5}),
                  ToldRoute(4, 3, {4, 5}), ToldRoute(2, 1, {8, 9}), ToldRoute(4, 1, {6, 7})));
  EXPECT_FALSE(routes.any()) << "settled once";
}

TEST(GuessedRoutes, OfAWrongGuessNothingIsTold) {
  GuessedRoutes routes;
  routes.OnPassBegins({.groups = {{.rows = 3, .guessed = 2}}});
  routes.Keep(0, ChosenBy({0, 1, 2}));
  EXPECT_THAT(SettleThem(routes, {1}), ElementsAre(ToldRoute(0, 0, {1})));
  routes.OnPassBegins({.groups = {{.rows = 3, .guessed = 2}}});
  routes.Keep(0, ChosenBy({0, 1, 2}));
  EXPECT_THAT(SettleThem(routes, {0}), IsEmpty());
}

TEST(GuessedRoutes, OfAPassThatWasNotCheckedAreForgotten) {
  GuessedRoutes routes;
  routes.OnPassBegins({.groups = {{.rows = 2, .guessed = 1}}});
  routes.Keep(0, ChosenBy({0, 1}));
  routes.OnPassBegins({.groups = {{.rows = 1}}});
  EXPECT_FALSE(routes.any());
}

}  // namespace
}  // namespace troupe
