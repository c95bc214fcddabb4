#include "placement/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "placement/problems_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

PlacementProblem TwoServersToDescribe() {
  return SmallProblem({3, 1}, {{{5, 1}, {1, 1}}, {{0, 2}, {3, 0}}});
}

void ExpectInvalidProblem(const PlacementProblem& problem, const char* words) {
  const Status status = Validate(problem);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(words));
}

TEST(ExpertTableTest, NumbersExpertsLayerByLayer) {
  const ExpertTable table({{1_B, 2_B}, {3_B, 4_B, 5_B}});
  EXPECT_EQ(table.layers(), 2u);
  EXPECT_EQ(table.size(), 5u);
  EXPECT_EQ(table.FirstOf(1), 2u);
  EXPECT_EQ(table.CountIn(1), 3u);
  EXPECT_EQ(table.Id(4), (ExpertId{.layer = 1, .expert = 2}));
  EXPECT_EQ(table.BytesOf(4), 5u);
  EXPECT_EQ(table.total_bytes(), 15u);
  EXPECT_FALSE(table.equal_bytes().has_value());
  EXPECT_EQ(ExpertTable::Equal(2, 3, 7_B).equal_bytes(), 7u);
}

TEST(LinkTableTest, ANamedPairHasItsOwnLinkInThatDirectionOnly) {
  LinkTable links{.usual = {.latency_seconds = 1, .bytes_per_second = 10}};
  links.pairs[{0, 1}] = {.latency_seconds = 2, .bytes_per_second = 20};
  EXPECT_EQ(links.Between(0, 1).latency_seconds, 2);
  EXPECT_EQ(links.Between(1, 0).latency_seconds, 1);
}

TEST(ProblemTest, AWellFormedProblemIsValid) {
  EXPECT_TRUE(Validate(TwoServersToDescribe()).ok()) << Validate(TwoServersToDescribe()).message();
}

TEST(ProblemTest, CountsSlotsDeviceByDevice) {
  PlacementProblem problem = TwoServersToDescribe();
  problem.experts = ExpertTable::Equal(2, 2, 2_B);
  problem.servers[0].devices = {{.memory = 3}, {.memory = 3}};
  EXPECT_EQ(problem.SlotsOf(0), 2u) << "two halves on two devices make no slot";
}

TEST(ProblemTest, AnExpertThatFitsNowhereIsNamed) {
  PlacementProblem problem = TwoServersToDescribe();
  problem.experts = ExpertTable({{1_B, 1_B}, {4_B, 1_B}});
  ExpectInvalidProblem(problem, "layer 1, expert 0: 4 B fit on no device, the largest has 3 B");
}

TEST(ProblemTest, TooLittleMemoryForACoverIsSaid) {
  PlacementProblem problem = TwoServersToDescribe();
  problem.servers[0].devices[0].memory = 2;
  ExpectInvalidProblem(problem, "no placement covers all experts");
  problem.experts = ExpertTable::Equal(2, 2, 2_B);
  problem.servers[0].devices[0].memory = 3;
  problem.servers[1].devices[0].memory = 5;
  ExpectInvalidProblem(problem, "the devices hold 3 of 2 bytes each, the model has 4");
}

TEST(ProblemTest, EachNumberThatIsNoneIsRefused) {
  const auto spoiled = [](auto spoil) {
    PlacementProblem problem = TwoServersToDescribe();
    spoil(problem);
    return problem;
  };
  ExpectInvalidProblem(spoiled([](auto& p) { p.servers.clear(); }), "without servers");
  ExpectInvalidProblem(spoiled([](auto& p) { p.servers[1].devices.clear(); }),
                       "server 's1' has no device");
  ExpectInvalidProblem(spoiled([](auto& p) { p.servers[1].activations.pop_back(); }),
                       "activations of 3 experts, the model has 4");
  ExpectInvalidProblem(spoiled([](auto& p) { p.servers[0].activations[2] = -1; }),
                       "frequency of -1");
  ExpectInvalidProblem(spoiled([](auto& p) { p.servers[0].activations[2] = NAN; }),
                       "frequency of nan");
  ExpectInvalidProblem(spoiled([](auto& p) { p.servers[0].devices[0].speed = 0; }), "speed 0");
  ExpectInvalidProblem(spoiled([](auto& p) { p.servers[0].devices[0].load_bytes_per_second = 0; }),
                       "loading at 0 bytes/s");
  ExpectInvalidProblem(spoiled([](auto& p) { p.links.usual.bytes_per_second = 0; }),
                       "the usual link");
  ExpectInvalidProblem(spoiled([](auto& p) {
                         p.links.pairs[{0, 2}] = p.links.usual;
                       }),
                       "link from server 0 to server 2");
  ExpectInvalidProblem(spoiled([](auto& p) { p.experts_per_token = 3; }), "3 experts per token");
  ExpectInvalidProblem(spoiled([](auto& p) {
                         p.experts = ExpertTable({{1_B, 1_B}, {0_B, 1_B}});
                       }),
                       "layer 1, expert 0: a size of 0 bytes");
}

TEST(ProblemTest, RandomProblemsForOtherTestsAreValid) {
  Rng rng(TestSeed());
  for (int i = 0; i < 500; ++i) {
    const PlacementProblem problem = RandomProblem(rng, {.equal_sizes = i % 2 == 0});
    ASSERT_TRUE(Validate(problem).ok()) << Validate(problem).message();
  }
}

}  // namespace
}  // namespace troupe
