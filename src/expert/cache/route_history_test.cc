#include "expert/cache/route_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Match = RouteHistory::Match;

constexpr ExpertGrid kHistoryLayer{.layers = 1, .experts = 8};

void Step(RouteHistory& history, std::vector<std::uint32_t> experts) {
  history.BeginStep();
  history.Use(0, experts, experts.size());
}

TEST(RouteHistoryTest, KnowsNothingLikeTheFirstSteps) {
  RouteHistory history(kHistoryLayer);
  EXPECT_THAT(history.Closest(4), IsEmpty());
  Step(history, {1, 2});
  EXPECT_THAT(history.Closest(4), IsEmpty());
  Step(history, {1, 2});
  EXPECT_THAT(history.Closest(4), IsEmpty()) << "nothing is known of what followed";
  Step(history, {1, 2});
  EXPECT_EQ(history.Closest(4).size(), 1u);
}

TEST(RouteHistoryTest, LikenessIsTheShareOfExpertsAndThreeEighthsOfTheStepsBefore) {
  RouteHistory history(kHistoryLayer);
  Step(history, {1, 2});
  Step(history, {3, 4});
  Step(history, {5, 6});
  Step(history, {1, 7});  // lag 3: half of the experts are those of the first step
  EXPECT_THAT(history.Closest(1), ElementsAre(Match{3, 60}));
  Step(history, {3, 4});  // lag 3 again: all of the second step's, and 60 * 3/8 from before
  EXPECT_THAT(history.Closest(1), ElementsAre(Match{3, 120 + 22}));
}

TEST(RouteHistoryTest, LayersAddUp) {
  RouteHistory history({.layers = 3, .experts = 8});
  for (int step = 0; step < 3; ++step) {
    history.BeginStep();
    for (std::uint32_t layer = 0; layer < 3; ++layer) {
      const std::vector<std::uint32_t> experts{step == 1 ? 5u : layer};
      history.Use(layer, experts, 1);
    }
  }
  EXPECT_THAT(history.Closest(1), ElementsAre(Match{2, 3 * 120}));
}

TEST(RouteHistoryTest, UsesThatTellNothingAreRememberedAllTheSame) {
  RouteHistory history(kHistoryLayer);
  const std::vector<std::uint32_t> most{0, 1, 2, 3, 4, 5};
  for (int step = 0; step < 3; ++step) {
    history.BeginStep();
    history.Use(0, most, 0);
  }
  EXPECT_THAT(history.Closest(1), ElementsAre(Match{2, 0}));
  EXPECT_EQ(history.StepsToUse({0, 5}, 1), 0u);
}

TEST(RouteHistoryTest, CountsStepsToTheNextUseUpToThePresent) {
  RouteHistory history(kHistoryLayer);
  Step(history, {1, 2});
  Step(history, {3, 4});
  Step(history, {2, 5});
  EXPECT_EQ(history.StepsToUse({0, 1}, 2), 0u);
  EXPECT_EQ(history.StepsToUse({0, 1}, 1), RouteHistory::kNotSoon);
  EXPECT_EQ(history.StepsToUse({0, 2}, 1), 1u);
  EXPECT_EQ(history.StepsToUse({0, 5}, 2), 2u);
  EXPECT_EQ(history.StepsToUse({0, 5}, 0), 0u);
}

TEST(RouteHistoryTest, LooksOnlySoFarAhead) {
  RouteHistory history(kHistoryLayer);
  Step(history, {1});
  for (std::uint32_t step = 1; step < RouteHistory::kAhead; ++step) Step(history, {2});
  Step(history, {1});
  EXPECT_EQ(history.StepsToUse({0, 1}, RouteHistory::kAhead - 1), RouteHistory::kAhead - 1);
  Step(history, {2});
  EXPECT_EQ(history.StepsToUse({0, 1}, RouteHistory::kAhead), RouteHistory::kAhead - 1);
  EXPECT_EQ(history.StepsToUse({0, 1}, RouteHistory::kAhead + 1), 0u);
  Step(history, {2});
  EXPECT_EQ(history.StepsToUse({0, 3}, 5), RouteHistory::kNotSoon);
}

TEST(RouteHistoryTest, AModelOfVeryManyLayersDoesNotOverflow) {
  const ExpertGrid grid{.layers = 4000, .experts = 4};
  RouteHistory history(grid, 128);
  const std::vector<std::uint32_t> experts{1, 2};
  for (int step = 0; step < 40; ++step) {
    history.BeginStep();
    for (std::uint32_t layer = 0; layer < grid.layers; ++layer) history.Use(layer, experts, 2);
  }
  for (const Match& match : history.Closest(10)) EXPECT_GT(match.likeness, 4000);
}

// The same by the definitions, from all that was ever used.
class SlowHistory {
 public:
  explicit SlowHistory(std::uint32_t layers) : layers_(layers) {}

  void BeginStep() {
    steps_.emplace_back(layers_);
    for (int& likeness : likeness_) likeness = likeness / 4 + likeness / 8;
    likeness_.push_back(0);
  }
  void Use(std::uint32_t layer, const std::vector<std::uint32_t>& experts, std::size_t of) {
    for (std::size_t lag = 1; lag < steps_.size(); ++lag) {
      const std::set<std::uint32_t>& then = steps_[steps_.size() - 1 - lag][layer];
      for (const std::uint32_t expert : experts) {
        if (of > 0 && then.contains(expert)) likeness_[lag] += 120 / static_cast<int>(of);
      }
    }
    steps_.back()[layer].insert(experts.begin(), experts.end());
  }
  std::vector<Match> Closest(std::size_t count, std::size_t oldest) const {
    std::vector<Match> all;
    for (std::uint32_t lag = 2; lag < steps_.size() && lag <= oldest; ++lag) {
      all.push_back({lag, static_cast<std::int16_t>(likeness_[lag])});
    }
    std::ranges::stable_sort(all, std::greater(), &Match::likeness);
    all.resize(std::min(all.size(), count));
    std::ranges::sort(all, {}, &Match::lag);
    return all;
  }
  std::uint32_t StepsToUse(ExpertId id, std::uint32_t lag) const {
    for (std::uint32_t steps = 0; steps <= lag && steps < RouteHistory::kAhead; ++steps) {
      if (steps_[steps_.size() - 1 - lag + steps][id.layer].contains(id.expert)) return steps;
    }
    return RouteHistory::kNotSoon;
  }

 private:
  std::uint32_t layers_;
  std::vector<std::vector<std::set<std::uint32_t>>> steps_;
  std::vector<int> likeness_;
};

TEST(RouteHistoryTest, AgreesWithItsDefinitionOverManyTurnsOfItsRing) {
  constexpr ExpertGrid kRingGrid{.layers = 3, .experts = 9};
  constexpr std::uint32_t kSteps = 256, kKept = kSteps - 64;
  Rng rng(TestSeed());
  RouteHistory history(kRingGrid, kSteps);
  SlowHistory slow(kRingGrid.layers);
  for (std::uint32_t step = 1; step < 1200; ++step) {
    history.BeginStep();
    slow.BeginStep();
    for (std::uint32_t layer = 0; layer < kRingGrid.layers; ++layer) {
      std::set<std::uint32_t> chosen;
      // The steps' experts come around, so that there is something to find.
      while (chosen.size() < 3) {
        const auto around = (step % 37 + chosen.size() * 2) % kRingGrid.experts;
        chosen.insert(
            static_cast<std::uint32_t>(rng.Below(3) > 0 ? around : rng.Below(kRingGrid.experts)));
      }
      const std::vector<std::uint32_t> experts(chosen.begin(), chosen.end());
      const std::size_t of = rng.Below(20) == 0 ? 0 : experts.size();
      history.Use(layer, experts, of);
      slow.Use(layer, experts, of);
      if (rng.Below(4) > 0) continue;
      const std::size_t count = 1 + rng.Below(12);
      const auto closest = history.Closest(count);
      ASSERT_EQ(std::vector<Match>(closest.begin(), closest.end()), slow.Closest(count, kKept))
          << "step " << step << ", layer " << layer;
      const auto lag = static_cast<std::uint32_t>(rng.Below(std::min(step, kKept)));
      const ExpertId id{layer, static_cast<std::uint32_t>(rng.Below(kRingGrid.experts))};
      ASSERT_EQ(history.StepsToUse(id, lag), slow.StepsToUse(id, lag)) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace troupe
