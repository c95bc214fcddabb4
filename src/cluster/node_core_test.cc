// Nodes of a list that share the experts between them: who finds whom, who holds what, who is
// refused.
#include "cluster/node_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string_view>
#include <vector>

#include "cluster/node_core_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanos kSecond = SimulatedNodes::kSecond;
constexpr ExpertGrid kGrid = SimulatedNodes::kGrid;

TEST(NodeCore, NodesFindEachOtherAndShareTheExpertsBetweenThem) {
  SimulatedNodes nodes({});
  nodes.Run(20 * kSecond);
  ExpectWell(nodes);
  std::vector<std::uint8_t> all(kGrid.Count());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_LE(CountOf(nodes.held(i)), 6u);
    for (std::size_t e = 0; e < all.size(); ++e) all[e] |= nodes.held(i)[e];
  }
  EXPECT_EQ(CountOf(all), 2u * kGrid.experts);  // of both layers that have experts
  EXPECT_TRUE(nodes.core(0)->leads());
  EXPECT_FALSE(nodes.core(1)->leads());
}

TEST(NodeCore, ListsInOtherOrdersHaveOneLeaderAllTheSame) {
  SimulatedNodes nodes({.lists_differ = true});
  nodes.Run(60 * kSecond);
  ExpectWell(nodes);
  EXPECT_TRUE(nodes.core(0)->leads());
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_FALSE(nodes.core(i)->leads());
    EXPECT_EQ(nodes.core(i)->LeaderName(), "n0");
  }
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("the lists are not in the same order")));
}

TEST(NodeCore, ANodeThatDiesIsNotAskedAndIsOneOfThemWhenItComesBack) {
  SimulatedNodes nodes({});
  nodes.Run(20 * kSecond);
  nodes.Kill(2);
  nodes.Run(5 * kSecond);
  EXPECT_FALSE(nodes.known(0).contains("n2"));
  EXPECT_FALSE(nodes.known(1).contains("n2"));
  nodes.Start(2);
  nodes.Run(60 * kSecond);
  ExpectWell(nodes);
  EXPECT_GT(CountOf(nodes.held(2)), 0u);
}

TEST(NodeCore, WithoutALeaderNodesServeByTheLastPlan) {
  SimulatedNodes nodes({});
  nodes.Run(20 * kSecond);
  const std::uint64_t epoch = nodes.core(1)->plan()->epoch;
  const std::vector<std::uint8_t> held = nodes.held(1);
  nodes.Kill(0);
  nodes.Run(300 * kSecond);
  EXPECT_EQ(nodes.core(1)->plan()->epoch, epoch);
  EXPECT_EQ(nodes.held(1), held);
  EXPECT_THAT(nodes.core(1)->Peers(), ElementsAre("n2"));
  // One that comes back knows nothing, and its plans are newer all the same.
  nodes.Start(0);
  nodes.Run(60 * kSecond);
  ExpectWell(nodes);
  EXPECT_GT(nodes.core(1)->plan()->epoch, epoch);
}

TEST(NodeCore, ALeaderThatHasForgottenItsPlansGivesNoEpochTwice) {
  SimulatedNodes nodes({.nodes = 1});
  nodes.Run(20 * kSecond);
  const std::uint64_t epoch = nodes.core(0)->plan()->epoch;
  nodes.Kill(0);
  nodes.Start(0);
  nodes.Run(20 * kSecond);
  EXPECT_NE(nodes.core(0)->plan()->epoch, epoch);
}

TEST(NodeCore, AChangeOfWhatUsersActivateMovesExperts) {
  SimulatedNodes nodes({.most_held = 4});
  nodes.Run(10 * kSecond);
  const std::vector<std::uint8_t> before = nodes.held(1);
  std::vector<std::uint32_t> uses(kGrid.Count(), 1);
  for (const std::uint32_t expert : {4u, 5u}) {
    for (const std::uint32_t layer : {1u, 2u}) uses[kGrid.Index({layer, expert})] = 1'000'000;
  }
  for (int i = 0; i < 60; ++i) {
    nodes.core(1)->OnActivity(uses, nodes.now());
    nodes.Run(kSecond);
  }
  ExpectWell(nodes);
  EXPECT_NE(nodes.held(1), before);
  for (const std::uint32_t layer : {1u, 2u}) {
    for (const std::uint32_t expert : {4u, 5u}) {
      EXPECT_EQ(nodes.held(1)[kGrid.Index({layer, expert})], 1) << layer << " " << expert;
    }
  }
}

TEST(NodeCore, WhoDoesNotFitIsRefusedAndSaysWhy) {
  struct Case {
    std::function<void(PeerHello&)> change;
    const char* said;
    const char* ends;
  };
  const Case cases[] = {
      {[](PeerHello& hello) { hello.model[0] = 1; }, "another model", "serves another model: node"},
      {[](PeerHello& hello) { hello.arithmetic = 1; }, "same bytes", ""},
      {[](PeerHello& hello) { hello.cluster = "other"; }, "cluster", "is of cluster 'lab', not"},
      {[](PeerHello& hello) { hello.node = "n0"; }, "name", "has a node 'n0' already"}};
  for (const auto& [change, said, ends] : cases) {
    SCOPED_TRACE(said);
    SimulatedNodes nodes({});
    nodes.Run(20 * kSecond);
    nodes.Kill(2);
    nodes.Run(kSecond);
    nodes.Start(2, change);
    nodes.Run(20 * kSecond);
    EXPECT_THAT(nodes.core(2)->Peers(), IsEmpty());
    EXPECT_THAT(nodes.core(0)->Peers(), ElementsAre("n1"));
    EXPECT_THAT(nodes.said(), Contains(HasSubstr(said)));
    // The newcomer ends, or serves alone where it is but another build; never one of the others.
    const bool is_wrong = std::string_view(said) != "same bytes";
    ASSERT_EQ(nodes.failed().size() > 0, is_wrong);
    for (const std::string& why : nodes.failed()) EXPECT_THAT(why, HasSubstr(ends));
  }
}

TEST(NodeCore, APlanThatIsMoreThanANodesMemoryAfterItsRestartDoesNotStay) {
  SimulatedNodes nodes({.most_held = 6});
  nodes.Run(20 * kSecond);
  ExpectWell(nodes);
  ASSERT_EQ(CountOf(nodes.held(2)), 6u);
  nodes.Kill(2);
  nodes.set_most_held(2, 2);
  nodes.Start(2);
  nodes.Run(60 * kSecond);
  ExpectWell(nodes);
  EXPECT_EQ(CountOf(nodes.held(2)), 2u);
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("node n2 was to hold more than its memory can")));
}

TEST(NodeCore, WhatIsSaidTellsOfPlansThatStayAndOfMovesThatAreDone) {
  SimulatedNodes nodes({});
  nodes.Run(100 * kSecond);
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("a new plan, as there was none")));
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("is carried out here")));
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("the plan stays: ")));
  ASSERT_TRUE(nodes.core(0)->look());
  EXPECT_FALSE(nodes.core(0)->look()->adopted);
  nodes.CutAny();
  nodes.Run(kSecond);
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("is gone: cut")));
}

TEST(NodeCore, AStepThatFailsStopsThePlanHereAndNothingElse) {
  SimulatedNodes nodes({});
  nodes.step_fails = 1;
  nodes.Run(20 * kSecond);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes.core(i)->Peers().size(), 2u);
    EXPECT_TRUE(nodes.core(i)->plan());
    EXPECT_FALSE(nodes.core(i)->settled());
    EXPECT_EQ(CountOf(nodes.held(i)), 0u);
  }
}

TEST(NodeCore, ANodeThatIsToGoLetsNothingGoBeforeAnotherHoldsIt) {
  SimulatedNodes nodes({.most_held = 12});
  nodes.Run(20 * kSecond);
  ASSERT_GT(CountOf(nodes.held(2)), 0u);
  ASSERT_TRUE(nodes.core(2)->Drain().ok());
  std::vector<std::uint8_t> all(kGrid.Count());
  for (int i = 0; i < 300; ++i) {
    nodes.Run(100 * SimulatedNodes::kMs);
    std::ranges::fill(all, 0);
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      for (std::size_t e = 0; e < all.size(); ++e) all[e] |= nodes.held(node)[e];
    }
    ASSERT_EQ(CountOf(all), 2u * kGrid.experts) << i;
  }
  EXPECT_EQ(CountOf(nodes.held(2)), 0u);
  EXPECT_TRUE(nodes.core(2)->settled());
}

TEST(NodeCore, WhoIsToGoIsToldWhereNobodyLeadsAndIsNotToGoWhereNobodyElseHasMemory) {
  SimulatedNodes nodes({.nodes = 3, .most_held = 12});
  nodes.Run(20 * kSecond);
  nodes.Kill(0);  // the first of the list leads
  nodes.Run(kSecond);
  const Result<std::string> second = nodes.core(2)->Drain();
  ASSERT_TRUE(second.ok());
  EXPECT_THAT(*second, HasSubstr("nobody leads now"));
  EXPECT_TRUE(nodes.core(2)->draining());
  nodes.Start(0);
  nodes.Run(30 * kSecond);
  nodes.Kill(1);
  nodes.Run(30 * kSecond);
  const Result<std::string> last = nodes.core(0)->Drain();
  ASSERT_FALSE(last.ok()) << "node 2 is to go";
  EXPECT_THAT(last.status().message(), HasSubstr("stop it"));
  EXPECT_FALSE(nodes.core(0)->draining());
  nodes.Kill(2);
  nodes.Run(kSecond);
  EXPECT_FALSE(nodes.core(0)->Drain().ok());
}

TEST(NodeCore, APeerThatAnsweredWronglyIsThrownOutThoughItStartsAnewUntilItIsLetInAgain) {
  SimulatedNodes nodes({});
  nodes.Run(20 * kSecond);
  nodes.Connect(2, 0);  // a second link, as where each of the two has dialled the other
  nodes.Run(kSecond);
  nodes.core(0)->OnWrongAnswer(nodes.start(2), {1, 2}, nodes.now());
  nodes.Run(kSecond);
  nodes.Mend();
  nodes.Run(5 * kSecond);
  EXPECT_THAT(nodes.core(0)->Peers(), ElementsAre("n1"));
  EXPECT_THAT(nodes.core(1)->Peers(), ElementsAre("n0", "n2"));
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("wrong rows of " + ToString(ExpertId{1, 2}))));
  nodes.Kill(2);
  nodes.Start(2);
  nodes.Run(60 * kSecond);
  EXPECT_THAT(nodes.core(0)->Peers(), ElementsAre("n1"));
  EXPECT_EQ(nodes.core(0)->thrown_out().peers().size(), 1u);
  EXPECT_EQ(nodes.core(0)->Readmit(nodes.now()), 1u);
  EXPECT_EQ(nodes.core(0)->Readmit(nodes.now()), 0u);
  nodes.Mend();
  nodes.Run(60 * kSecond);
  ExpectWell(nodes);
}

// Others have only to hear of its new life: they are to check it anew.
TEST(NodeCore, OthersAreToldOfAnotherLifeOfAPeerThatWasThrownOut) {
  SimulatedNodes nodes({});
  std::vector<std::uint64_t> suspected;
  nodes.on_suspect = [&](std::size_t i, std::uint64_t start) {
    if (i == 1) suspected.push_back(start);
  };
  nodes.Run(20 * kSecond);
  nodes.core(0)->OnWrongAnswer(nodes.start(2), {1, 2}, nodes.now());
  nodes.Run(kSecond);
  const std::uint64_t before = nodes.start(2);
  nodes.Kill(2);
  nodes.Start(2);
  nodes.Run(5 * kSecond);
  nodes.Mend();
  nodes.Run(5 * kSecond);
  EXPECT_THAT(suspected, ElementsAre(before, nodes.start(2)));
}

TEST(ThrownOut, IsKnownByItsAddressAndWithoutCertificatesByItsName) {
  ThrownOut peers;
  peers.Add({.start = 7, .node = "c", .address = "10.0.0.3:7070", .id = {1, 2}});
  EXPECT_TRUE(peers.Has(7));
  EXPECT_FALSE(peers.Has(8));
  for (const bool proven : {false, true}) {
    const PeerIdentity by{.address = {}, .secure = proven, .names = {"10.0.0.4"}};
    const auto is_one = [&](const std::string& node, const std::string& address) {
      return peers.Find({.node = node, .address = address}, by) != nullptr;
    };
    EXPECT_TRUE(is_one("d", "10.0.0.3:7070")) << "another name";
    EXPECT_EQ(is_one("c", "10.0.0.4:7070"), !proven)
        << "no certificate proves a name, so anybody could have had it";
    EXPECT_FALSE(is_one("d", "10.0.0.4:7070"));
  }
}

TEST(NodeCore, AnEpochThatOneHasMadeUpStopsNoPlansThoughTheOneThatLeadsStartsAnew) {
  SimulatedNodes nodes({.nodes = 4, .seed = TestSeed()});
  nodes.Run(60 * kSecond);
  ExpectWell(nodes);
  PeerHello stranger = nodes.HelloOf(3);
  stranger.start_id = 1'000'000;
  stranger.node = "x";
  stranger.address = "x:1";
  stranger.plan_epoch = kMostTellableEpoch;
  nodes.core(0)->OnLinkOpened(1'000'000, {.address = {}, .names = {}}, nodes.now());
  nodes.core(0)->OnFrame(1'000'000, Encode(stranger), nodes.now());
  nodes.core(0)->OnLinkClosed(1'000'000, "lost", nodes.now());
  nodes.Kill(3);
  nodes.Run(150 * kSecond);
  nodes.Start(3);
  nodes.Run(150 * kSecond);
  ExpectWell(nodes);
  ASSERT_GT(nodes.core(1)->plan()->epoch, kMostTellableEpoch);
  nodes.Kill(0);
  nodes.Run(10 * kSecond);
  nodes.Start(0);
  nodes.Run(150 * kSecond);
  ExpectWell(nodes);
}

}  // namespace
}  // namespace troupe
