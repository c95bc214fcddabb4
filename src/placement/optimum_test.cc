#include "placement/optimum.h"

#include <gtest/gtest.h>

#include <limits>

#include "placement/placer.h"
#include "placement/problems_for_test.h"
#include "placement/remote_calls.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// All placements there are, tried one by one: servers of one device, few experts.
class Exhaustive {
 public:
  explicit Exhaustive(const PlacementProblem& problem) : problem_(problem), holders_(problem) {}
  double Least() {
    Try(0, problem_.servers[0].memory());
    return least_;
  }

 private:
  void Try(std::uint32_t cell, std::uint64_t free) {
    const std::uint32_t experts = problem_.experts.size();
    if (cell == experts * problem_.server_count()) {
      if (holders_.Covers()) least_ = std::min(least_, CountRemoteCalls(problem_, holders_).remote);
      return;
    }
    const std::uint32_t n = cell / experts, e = cell % experts;
    if (e == 0) free = problem_.servers[n].memory();
    Try(cell + 1, free);
    if (problem_.experts.BytesOf(e) > free) return;
    holders_.Add(n, e);
    Try(cell + 1, free - problem_.experts.BytesOf(e));
    holders_.Remove(n, e);
  }

  const PlacementProblem& problem_;
  HolderTable holders_;
  double least_ = std::numeric_limits<double>::infinity();
};

PlacementProblem TinyProblem(Rng& rng, bool equal_sizes) {
  PlacementProblem problem = RandomProblem(
      rng, {.equal_sizes = equal_sizes, .most_servers = 3, .most_layers = 2, .most_experts = 3});
  for (PlacementServer& server : problem.servers) {
    server.devices = {{.memory = server.memory(), .load_bytes_per_second = 1}};
  }
  return problem;
}

TEST(OptimumTest, OfEqualSizesIsTheBestOfAllPlacements) {
  Rng rng(TestSeed());
  for (int i = 0; i < 60; ++i) {
    PlacementProblem problem = TinyProblem(rng, true);
    // One device may hold what two could not: count its slots anew.
    if (!Validate(problem).ok()) continue;
    const RemoteCallOptimum optimum = MinimizeRemoteCalls(problem).value();
    ASSERT_TRUE(optimum.exact);
    const double least = Exhaustive(problem).Least();
    ASSERT_NEAR(optimum.lower_bound, least, 1e-6) << "in problem " << i;
    ASSERT_NEAR(CountRemoteCalls(problem, optimum.placement).remote, least, 1e-6);
  }
}

TEST(OptimumTest, ArcsThatComeInLaterLeadToWhatAllArcsWouldHave) {
  Rng rng(TestSeed());
  int short_of_arcs = 0;
  for (int i = 0; i < 40; ++i) {
    const PlacementProblem problem =
        RandomProblem(rng, {.most_servers = 20, .most_experts = 30, .most_memory = 1.3});
    const auto remote = [&](std::uint32_t keenest) {
      return CountRemoteCalls(problem, SolveEqualSizes(problem, keenest)).remote;
    };
    const double all = remote(problem.server_count());
    ASSERT_NEAR(remote(kKeenestServers), all, 1e-6) << "in problem " << i;
    ASSERT_NEAR(remote(0), all, 1e-6) << "in problem " << i;
    // And by other mathematics: the Lagrangian's bound, which comes near it from below.
    const double bound = RemoteCallBound(problem);
    ASSERT_LE(bound, all + 1e-6) << "in problem " << i;
    ASSERT_GE(bound, 0.97 * all - 1e-6) << "in problem " << i;
    short_of_arcs += problem.server_count() > kKeenestServers ? 1 : 0;
  }
  EXPECT_GT(short_of_arcs, 20);
}

TEST(OptimumTest, OfUnequalSizesLiesBetweenTheBoundAndTheHeuristic) {
  Rng rng(TestSeed());
  double worst = 0, sum = 0;
  int tried = 0;
  for (int i = 0; i < 60; ++i) {
    const PlacementProblem problem = TinyProblem(rng, false);
    if (problem.experts.equal_bytes()) continue;  // by chance
    const Result<RemoteCallOptimum> optimum = MinimizeRemoteCalls(problem);
    ASSERT_TRUE(optimum.ok()) << optimum.status().message();
    ASSERT_FALSE(optimum->exact);
    const double least = Exhaustive(problem).Least();
    const RemoteCalls found = CountRemoteCalls(problem, optimum->placement);
    ASSERT_LE(optimum->lower_bound, least + 1e-6) << "in problem " << i;
    ASSERT_GE(found.remote, least - 1e-6) << "in problem " << i;
    if (found.all == 0) continue;
    worst = std::max(worst, (found.remote - least) / found.all);
    sum += (found.remote - least) / found.all;
    ++tried;
  }
  EXPECT_LT(sum / tried, 0.02) << "the heuristic is to be good, not only valid";
  RecordProperty("worst", std::to_string(worst));
}

TEST(OptimumTest, BeatsDanceMoeWhereAlgorithm2GivesUpTheWrongDuplicate) {
  // The fewest duplicates are on server 0, so Algorithm 2 takes its expert 0, worth 9, where server
  // 1's expert 1 would have cost 2.
  const PlacementProblem problem =
      SmallProblem({2, 2, 2}, {{{9, 0, 0, 8}}, {{3, 2, 1, 0}}, {{3, 2, 1, 0}}});
  EXPECT_EQ(CountRemoteCalls(problem, MakeDanceMoe()->Place(problem).value()).remote, 9 + 1 + 1);
  EXPECT_EQ(MinimizeRemoteCalls(problem)->lower_bound, 0 + 2 + 1);
}

}  // namespace
}  // namespace troupe
