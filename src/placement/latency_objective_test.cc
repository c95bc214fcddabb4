#include "placement/latency_objective.h"

#include <gtest/gtest.h>

#include <cmath>

#include "placement/placer.h"
#include "placement/problems_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ServingCosts kCosts{.expert = {.base = 2e-3, .each = 1e-3},
                              .call = {.base = 5e-3, .each = 1e-6},
                              .bytes_per_token = 100};

HolderTable Holders(const PlacementProblem& problem,
                    const std::vector<std::vector<ExpertIndex>>& held) {
  HolderTable holders(problem);
  for (std::uint32_t n = 0; n < held.size(); ++n) {
    for (const ExpertIndex e : held[n]) holders.Add(n, e);
  }
  return holders;
}

TEST(LatencyObjectiveTest, ALocalTokenCostsItsExpert) {
  const PlacementProblem problem = SmallProblem({2, 2}, {{{1, 0}}, {{0, 0}}});
  const LatencyModel model{.costs = kCosts, .passes = {{{.tokens = 1, .per_second = 1e-9}}, {}}};
  const LatencyObjective objective(problem, model);
  const double seconds = objective.Evaluate(Holders(problem, {{0, 1}, {}})).seconds;
  EXPECT_NEAR(seconds, 3e-3, 1e-6);  // the chance of an expert is capped just below one
}

TEST(LatencyObjectiveTest, ARemoteTokenPaysForBothWays) {
  const PlacementProblem problem = SmallProblem({2, 2}, {{{1, 0}}, {{0, 0}}});
  const LatencyModel model{.costs = kCosts, .passes = {{{.tokens = 1, .per_second = 1e-9}}, {}}};
  const LatencyObjective objective(problem, model);
  const double seconds = objective.Evaluate(Holders(problem, {{1}, {0, 1}})).seconds;
  // Expert, twice 1 ms and 100 bytes at 1 MB/s, handling of 200 bytes.
  EXPECT_NEAR(seconds, 3e-3 + 2 * (1e-3 + 1e-4) + 5e-3 + 200e-6, 2e-6);
}

TEST(LatencyObjectiveTest, ALayerTakesAsLongAsItsSlowestCall) {
  // Both experts are certain: one local (3 ms), one remote (10.4 ms). Not their sum.
  PlacementProblem problem = SmallProblem({1, 1}, {{{1, 1}}, {{0, 0}}});
  problem.experts_per_token = 2;
  const LatencyModel model{.costs = kCosts, .passes = {{{.tokens = 1, .per_second = 1e-9}}, {}}};
  const LatencyObjective objective(problem, model);
  EXPECT_NEAR(objective.Evaluate(Holders(problem, {{0}, {1}})).seconds, 10.4e-3, 5e-6);
}

TEST(LatencyObjectiveTest, ACallThatIsRarelyMadeRarelyCosts) {
  const PlacementProblem problem = SmallProblem({1, 1}, {{{3, 1}}, {{0, 0}}});
  const LatencyModel model{.costs = kCosts, .passes = {{{.tokens = 1, .per_second = 1e-9}}, {}}};
  const LatencyObjective objective(problem, model);
  // The remote call has a chance of a quarter; else the local expert's 3 ms, chance three quarters.
  EXPECT_NEAR(objective.Evaluate(Holders(problem, {{0}, {1}})).seconds,
              0.25 * 10.4e-3 + 0.75 * 0.75 * 3e-3, 1e-6);
}

TEST(LatencyObjectiveTest, ABusyHostMakesItsCallersWait) {
  const PlacementProblem problem = SmallProblem({1, 2}, {{{1, 1}}, {{1, 1}}});
  const auto estimate = [&](double per_second) {
    const LatencyModel model{
        .costs = kCosts,
        .passes = {{{.tokens = 1, .per_second = 1e-9}}, {{.tokens = 1, .per_second = per_second}}}};
    return LatencyObjective(problem, model).Evaluate(Holders(problem, {{0}, {0, 1}}));
  };
  const LatencyEstimate idle = estimate(1e-9), busy = estimate(200);
  EXPECT_NEAR(busy.busiest_server, 200 * 3e-3, 1e-3);
  EXPECT_GT(busy.by_server[0], 1.2 * idle.by_server[0]);
  EXPECT_TRUE(std::isfinite(estimate(1e6).seconds)) << "overload is bad, not infinite";
  EXPECT_GT(estimate(1e6).by_server[0], estimate(1e5).by_server[0]);
}

TEST(LatencyObjectiveTest, PromptsThatQueueAtHomeWaitAsInMD1) {
  const PlacementProblem problem = SmallProblem({2}, {{{1, 0}}});
  LatencyModel model{.costs = {.expert = {.base = 0.2}},
                     .passes = {{{.tokens = 1, .per_second = 0.5}}}};
  const auto seconds = [&] {
    return LatencyObjective(problem, model).Evaluate(Holders(problem, {{0, 1}})).seconds;
  };
  const double alone = seconds();
  model.prompts_per_second = {0.5};
  // Those that take turns wait for their turn only.
  const double service = 0.2, rho = 0.5 * service;
  EXPECT_NEAR(seconds(), service + rho / (1 - rho) * service / 2, 1e-4);
  EXPECT_GT(alone, 0.2) << "passes that overlap wait for each other at the device";
}

TEST(LatencyObjectiveTest, WhatSharesALinkShowsInItsFactor) {
  // Server 0 answers two callers; by pair each has a link of its own, by egress they share one.
  const PlacementProblem problem = SmallProblem({2, 1, 1}, {{{0, 0}}, {{1, 0}}, {{1, 0}}});
  const auto busiest = [&](LinkSharing sharing) {
    const LatencyModel model{
        .costs = kCosts, .sharing = sharing, .passes = {{}, {{1, 1000.0}}, {{1, 1000.0}}}};
    return LatencyObjective(problem, model)
        .Evaluate(Holders(problem, {{0, 1}, {1}, {1}}))
        .busiest_link;
  };
  EXPECT_NEAR(busiest(LinkSharing::kPair), 0.1, 1e-3);  // 1000 * 100 bytes of 1 MB/s
  EXPECT_NEAR(busiest(LinkSharing::kEgress), 0.2, 1e-3);
}

// Server 0's tokens take experts 0 and 1, one from each of two servers that are at work for their
// own users, whose tokens take two experts that they have.
PlacementProblem TwoBusyHosts() {
  PlacementProblem problem =
      SmallProblem({4, 4, 4}, {{{1, 1, 0, 0}}, {{1, 0, 1, 0}}, {{0, 1, 0, 1}}});
  problem.experts_per_token = 2;
  return problem;
}

TEST(LatencyObjectiveTest, CallsThatBeginTogetherShareWhatTheirServerSends) {
  const PlacementProblem problem = TwoBusyHosts();
  const auto seconds = [&](LinkSharing sharing) {
    const LatencyModel model{
        .costs = kCosts, .sharing = sharing, .passes = {{{10, 1e-9}}, {{1, 1e-9}}, {{1, 1e-9}}}};
    return LatencyObjective(problem, model)
        .Evaluate(Holders(problem, {{}, {0, 2}, {1, 3}}))
        .by_server[0];
  };
  // Ten tokens of 100 bytes at 1 MB/s to each of the two: 1 ms, or both in 2 ms.
  EXPECT_NEAR(seconds(LinkSharing::kEgress) - seconds(LinkSharing::kPair), 1e-3, 1e-6);
}

TEST(LatencyObjectiveTest, TheSlowestOfTwoWaitsIsLongerThanTheirMean) {
  const PlacementProblem problem = TwoBusyHosts();
  const auto seconds = [&](double per_second) {
    const LatencyModel model{.costs = kCosts,
                             .passes = {{{1, 1e-9}}, {{1, per_second}}, {{1, per_second}}}};
    return LatencyObjective(problem, model)
        .Evaluate(Holders(problem, {{}, {0, 2}, {1, 3}}))
        .by_server[0];
  };
  // 100 tokens a second of two experts of 3 ms: busy 0.6 of the time, in 200 jobs a second (the
  // dense part is one, too) of 3 ms in the mean. The mean wait is 0.6 / 0.4 of that, and of two
  // exponential ones the longer is 1.5 times the mean.
  EXPECT_NEAR(seconds(100) - seconds(1e-9), 1.5 * 1.5 * 3e-3, 0.02 * 1.5 * 1.5 * 3e-3);
}

TEST(LatencyObjectiveTest, AnAnswerSharesTheLinkWithAllCallsOfItsHost) {
  // Server 1 answers server 0, and its own tokens call servers 2 and 3, 100 bytes each.
  PlacementProblem problem =
      SmallProblem({1, 1, 1, 1}, {{{1, 0, 0, 1}}, {{0, 1, 1, 0}}, {{0, 0, 0, 0}}, {{0, 0, 0, 0}}});
  problem.experts_per_token = 2;
  const auto seconds = [&](double per_second) {
    const LatencyModel model{.costs = {.bytes_per_token = 100},
                             .sharing = LinkSharing::kEgress,
                             .passes = {{{1, 1e-9}}, {{1, per_second}}, {}, {}}};
    return LatencyObjective(problem, model)
        .Evaluate(Holders(problem, {{3}, {0}, {1}, {2}}))
        .by_server[0];
  };
  // 2000 a second send 0.4 of the time. The answer takes 0.1 ms alone, and 0.2 ms longer when it
  // meets two calls of as many bytes; others lengthen that to 1 / 0.6 of it.
  EXPECT_NEAR(seconds(2000) - seconds(1e-9), 0.4 * 0.2e-3 / 0.6, 1e-7);
}

TEST(CallRoutesTest, PreferTheBetterLinkAndSpreadOverEquals) {
  PlacementProblem problem =
      SmallProblem({1, 1, 1}, std::vector(3, std::vector(1, std::vector<double>(1, 1))));
  HolderTable holders = Holders(problem, {{}, {0}, {0}});
  problem.links.pairs[{0, 2}] = {.latency_seconds = 0, .bytes_per_second = 1e9};
  EXPECT_EQ(CallRoutes(problem, holders).HostOf(0, 0), 2u);
  EXPECT_EQ(CallRoutes(problem, holders).HostOf(1, 0), 1u) << "what is at home is not called";

  const PlacementProblem wide =
      SmallProblem({400, 400, 1}, std::vector(3, std::vector(1, std::vector<double>(400, 1))));
  HolderTable both(wide);
  for (ExpertIndex e = 0; e < 400; ++e) {
    both.Add(0, e);
    both.Add(1, e);
  }
  const CallRoutes routes(wide, both);
  int first = 0;
  for (ExpertIndex e = 0; e < 400; ++e) first += routes.HostOf(2, e) == 0 ? 1 : 0;
  EXPECT_NEAR(first, 200, 20);
}

TEST(CallRoutesTest, ANewHolderTakesCallersAndMovesNobodyElse) {
  const PlacementProblem problem =
      SmallProblem({9, 9, 9, 9, 9}, std::vector(5, std::vector(1, std::vector<double>(50, 1))));
  HolderTable before(problem);
  for (ExpertIndex e = 0; e < 50; ++e) {
    before.Add(0, e);
    before.Add(1, e);
  }
  HolderTable after = before;
  for (ExpertIndex e = 0; e < 50; ++e) after.Add(2, e);
  const CallRoutes old_routes(problem, before), new_routes(problem, after);
  int moved = 0;
  for (std::uint32_t caller = 3; caller < 5; ++caller) {
    for (ExpertIndex e = 0; e < 50; ++e) {
      const std::uint32_t host = new_routes.HostOf(caller, e);
      EXPECT_TRUE(host == 2 || host == old_routes.HostOf(caller, e));
      moved += host == 2 ? 1 : 0;
    }
  }
  EXPECT_NEAR(moved, 33, 12);
}

TEST(LatencySearchTest, IsNeverWorseThanWhereItStarts) {
  Rng rng(TestSeed());
  double sum_start = 0, sum_found = 0;
  for (int i = 0; i < 40; ++i) {
    const PlacementProblem problem = RandomProblem(rng, {.most_servers = 4});
    LatencyModel model{.costs = kCosts};
    for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
      model.passes.push_back({{.tokens = 20, .per_second = 0.2}, {.tokens = 1, .per_second = 2}});
    }
    const LatencyObjective objective(problem, model);
    const auto seconds = [&](const Placement& placement) {
      return objective.Evaluate(HolderTable(problem, placement)).seconds;
    };
    const double start = seconds(MakeDanceMoe()->Place(problem).value());
    const double found = seconds(MakeLatencySearch(model)->Place(problem).value());
    for (const auto& placer : {MakeDanceMoe(), MakeEplb(), MakeSmartMoe(), MakeOptimumPlacer()}) {
      ASSERT_LE(found, seconds(placer->Place(problem).value()) * (1 + 1e-9))
          << placer->Name() << " in problem " << i;
    }
    sum_start += start;
    sum_found += found;
  }
  EXPECT_LT(sum_found, 0.98 * sum_start) << "and better on the whole";
}

TEST(LatencySearchTest, PassesOfAnotherNumberOfServersAreRefused) {
  const PlacementProblem problem = SmallProblem({2}, {{{1, 1}}});
  EXPECT_FALSE(MakeLatencySearch({.passes = {{}, {}}})->Place(problem).ok());
}

}  // namespace
}  // namespace troupe
