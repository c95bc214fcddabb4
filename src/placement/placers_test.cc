// What holds for every placement, on random problems; and what each one is for, on small ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "placement/latency_objective.h"
#include "placement/layer_counts.h"
#include "placement/optimum.h"
#include "placement/placer.h"
#include "placement/problems_for_test.h"
#include "placement/remote_calls.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlacerOptions Options() {
  PlacerOptions options{.seed = 7};
  options.latency.costs = {
      .expert = {1e-4, 1e-6}, .dense = {1e-4, 1e-6}, .call = {1e-4, 0}, .bytes_per_token = 4096};
  return options;
}

class EveryPlacer : public ::testing::TestWithParam<std::string_view> {
 protected:
  Result<Placement> Place(const PlacementProblem& problem) const {
    return MakePlacer(GetParam(), Options()).value()->Place(problem);
  }
};

TEST_P(EveryPlacer, CoversAllExpertsWithinMemoryAndNeverBeatsTheOptimum) {
  Rng rng(TestSeed());
  for (int i = 0; i < 300; ++i) {
    const PlacementProblem problem = RandomProblem(rng);
    const Result<Placement> placement = Place(problem);
    ASSERT_TRUE(placement.ok()) << placement.status().message() << " in problem " << i;
    const Status valid = Validate(*placement, problem);
    ASSERT_TRUE(valid.ok()) << valid.message() << " in problem " << i;
    const double remote = CountRemoteCalls(problem, *placement).remote;
    const double least = CountRemoteCalls(problem, SolveEqualSizes(problem)).remote;
    ASSERT_GE(remote, least - 1e-6) << "in problem " << i;
  }
}

TEST_P(EveryPlacer, CopesWithUnequalSizesOrSaysThatItCannot) {
  Rng rng(TestSeed());
  int failed = 0;
  for (int i = 0; i < 200; ++i) {
    const PlacementProblem problem = RandomProblem(rng, {.equal_sizes = false});
    const Result<Placement> placement = Place(problem);
    if (!placement.ok()) {
      EXPECT_THAT(placement.status().message(), HasSubstr("find no room"));
      ++failed;
      continue;
    }
    const Status valid = Validate(*placement, problem);
    ASSERT_TRUE(valid.ok()) << valid.message() << " in problem " << i;
    ASSERT_GE(CountRemoteCalls(problem, *placement).remote, RemoteCallBound(problem) - 1e-6);
  }
  EXPECT_LE(failed, 2) << "there is memory for 1.5 times the experts";
}

TEST_P(EveryPlacer, GivesTheSamePlacementEveryTime) {
  Rng rng(TestSeed());
  const PlacementProblem problem = RandomProblem(rng);
  EXPECT_EQ(Place(problem).value(), Place(problem).value());
}

INSTANTIATE_TEST_SUITE_P(All, EveryPlacer,
                         ::testing::ValuesIn(PlacerNames().begin(), PlacerNames().end()),
                         [](const auto& one) { return std::string(one.param); });

TEST(PlacerTest, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const auto placer = MakePlacer("best", {});
  ASSERT_FALSE(placer.ok());
  EXPECT_THAT(placer.status().message(), HasSubstr("'best'; there are uniform, redundance"));
}

TEST(DanceMoeTest, HoldsAsManyOfEachLayerAsAlgorithm1Demands) {
  Rng rng(TestSeed());
  for (int i = 0; i < 300; ++i) {
    const PlacementProblem problem = RandomProblem(rng);
    const LayerCounts counts = CountExpertsPerLayer(problem);
    const Placement placement = MakeDanceMoe()->Place(problem).value();
    LayerCounts held(problem.server_count(),
                     std::vector<std::uint32_t>(problem.experts.layers(), 0));
    std::vector<std::uint64_t> totals(problem.experts.layers(), 0);
    for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
      std::uint64_t all = 0;
      for (const auto& device : placement.experts[n]) {
        for (const ExpertIndex e : device) ++held[n][problem.experts.LayerOf(e)];
      }
      for (std::uint32_t l = 0; l < totals.size(); ++l) {
        all += counts[n][l];
        totals[l] += counts[n][l];
      }
      ASSERT_EQ(all, std::min<std::uint64_t>(problem.SlotsOf(n), problem.experts.size()));
    }
    ASSERT_EQ(held, counts) << "in problem " << i;
    for (std::uint32_t l = 0; l < totals.size(); ++l) {
      ASSERT_GE(totals[l], problem.experts.CountIn(l)) << "layer " << l << " in problem " << i;
    }
  }
}

TEST(UniformTest, GivesEveryDeviceAsManyOfEachLayerOnce) {
  PlacementProblem problem =
      SmallProblem({40, 40, 0}, std::vector(3, std::vector(5, std::vector<double>(16, 1))));
  problem.servers[2].devices = {problem.servers[0].devices[0], problem.servers[0].devices[0]};
  const Placement placement = MakeUniform(1)->Place(problem).value();
  EXPECT_EQ(placement.copies(), 80u);
  for (const auto& server : placement.experts) {
    for (const auto& device : server) {
      std::vector<int> of_layer(5, 0);
      for (const ExpertIndex e : device) ++of_layer[problem.experts.LayerOf(e)];
      EXPECT_THAT(of_layer, ElementsAre(4, 4, 4, 4, 4));
    }
  }
  EXPECT_NE(placement, MakeUniform(2)->Place(problem).value()) << "which ones is left to chance";
}

TEST(RedundanceTest, FillsEveryDevice) {
  const PlacementProblem problem =
      SmallProblem({7, 9}, std::vector(2, std::vector(3, std::vector<double>(4, 1))));
  const Placement placement = MakeRedundance(3)->Place(problem).value();
  EXPECT_EQ(placement.experts[0][0].size(), 7u);
  EXPECT_EQ(placement.experts[1][0].size(), 9u);
}

TEST(SmartMoeTest, BalancesLoadWithEqualCounts) {
  const PlacementProblem problem = SmallProblem({4, 4}, {{{9, 8, 2, 1}}, {{0, 0, 0, 0}}});
  const Placement placement = MakeSmartMoe()->Place(problem).value();
  EXPECT_THAT(placement.experts,
              ElementsAre(ElementsAre(ElementsAre(0, 3)), ElementsAre(ElementsAre(1, 2))));
}

TEST(SmartMoeTest, AFasterDeviceGetsMoreLoad) {
  PlacementProblem problem = SmallProblem({4, 4}, {{{9, 8, 2, 1}}, {{0, 0, 0, 0}}});
  problem.servers[1].devices[0].speed = 10;
  const Placement placement = MakeSmartMoe()->Place(problem).value();
  EXPECT_THAT(placement.experts,
              ElementsAre(ElementsAre(ElementsAre(2, 3)), ElementsAre(ElementsAre(0, 1))));
}

TEST(EplbTest, CopiesTheHottestAndSpreadsTheLoad) {
  // Slots 3 + 3 for 4 experts: 12 is copied (6, 6), then 7 (3.5, 3.5).
  const PlacementProblem problem = SmallProblem({3, 3}, {{{12, 7, 2, 1}}, {{0, 0, 0, 0}}});
  const Placement placement = MakeEplb()->Place(problem).value();
  EXPECT_THAT(placement.experts,
              ElementsAre(ElementsAre(ElementsAre(0, 1, 2)), ElementsAre(ElementsAre(0, 1, 3))));
}

TEST(EplbTest, AFasterDeviceGetsMoreLoad) {
  PlacementProblem problem = SmallProblem({2, 2}, {{{9, 8, 2, 1}}, {{0, 0, 0, 0}}});
  problem.servers[1].devices[0].speed = 10;
  const Placement placement = MakeEplb()->Place(problem).value();
  EXPECT_THAT(placement.experts[1][0], ElementsAre(0, 1));
}

}  // namespace
}  // namespace troupe
