#include "cluster/node_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cluster/simulated_nodes_for_test.h"
#include "testing/sanitized.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanos kSecond = SimulatedNodes::kSecond;
constexpr ExpertGrid kGrid = SimulatedNodes::kGrid;

std::size_t CountOf(const std::vector<std::uint8_t>& held) {
  return static_cast<std::size_t>(std::ranges::count(held, 1));
}

ExpertBits BitsOf(const std::vector<std::uint8_t>& held) {
  ExpertBits bits(kGrid);
  for (std::uint32_t layer = 0; layer < kGrid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < kGrid.experts; ++expert) {
      if (held[kGrid.Index({layer, expert})] != 0) bits.Add({layer, expert});
    }
  }
  return bits;
}

// Everybody knows everybody, all carry out one plan, and each knows what the others hold.
void ExpectWell(SimulatedNodes& nodes) {
  std::set<std::uint64_t> epochs;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ASSERT_NE(nodes.core(i), nullptr);
    EXPECT_EQ(nodes.core(i)->Peers().size(), nodes.size() - 1) << "node " << i;
    ASSERT_TRUE(nodes.core(i)->plan()) << "node " << i;
    epochs.insert(nodes.core(i)->plan()->epoch);
    EXPECT_TRUE(nodes.core(i)->settled()) << "node " << i;
    for (std::size_t other = 0; other < nodes.size(); ++other) {
      if (other == i) continue;
      const auto known = nodes.known(i).find("n" + std::to_string(other));
      ASSERT_NE(known, nodes.known(i).end()) << i << " of " << other;
      EXPECT_EQ(known->second, BitsOf(nodes.held(other))) << i << " of " << other;
    }
  }
  EXPECT_EQ(epochs.size(), 1u);
}

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

TEST(NodeCore, AChangeOfWhatUsersActivateMovesExperts) {
  SimulatedNodes nodes({.most_held = 4});
  nodes.Run(10 * kSecond);
  std::vector<std::uint32_t> uses(kGrid.Count(), 1);
  for (const std::uint32_t expert : {4u, 5u}) {
    for (const std::uint32_t layer : {1u, 2u}) uses[kGrid.Index({layer, expert})] = 1'000'000;
  }
  for (int i = 0; i < 60; ++i) {
    nodes.core(1)->OnActivity(uses, nodes.now());
    nodes.Run(kSecond);
  }
  ExpectWell(nodes);
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
    EXPECT_EQ(CountOf(nodes.held(i)), 0u);
  }
}

TEST(NodeCore, ANodeThatIsToGoLetsNothingGoBeforeAnotherHoldsIt) {
  SimulatedNodes nodes({.most_held = 12});
  nodes.Run(20 * kSecond);
  ASSERT_GT(CountOf(nodes.held(2)), 0u);
  nodes.core(2)->Drain();
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

TEST(NodeCore, APeerThatAnsweredWronglyIsThrownOutUntilItStartsAnew) {
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
  ExpectWell(nodes);
}

// The one that leads, where all agree on it.
std::size_t LeaderOf(SimulatedNodes& nodes) {
  std::set<std::size_t> leaders;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes.core(i) && nodes.core(i)->leads()) leaders.insert(i);
  }
  EXPECT_EQ(leaders.size(), 1u);
  return leaders.empty() ? 0 : *leaders.begin();
}

TEST(NodeCoreWithStore, NodesFindEachOtherAndFollowThePlanOfWhoLeads) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kSecond);
  ExpectWell(nodes);
  (void)LeaderOf(nodes);
}

TEST(NodeCoreWithStore, APlanOfSingleCopiesDoesNotStayWhereMoreAreDemanded) {
  SimulatedNodes nodes({.most_held = 8, .has_store = true});
  nodes.Run(30 * kSecond);
  ExpectWell(nodes);
  nodes.set_copies(2);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes.Kill(i);
  nodes.Run(30 * kSecond);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes.Start(i);
  nodes.Run(90 * kSecond);
  ExpectWell(nodes);
  for (const std::uint32_t layer : {1u, 2u}) {
    for (std::uint32_t expert = 0; expert < kGrid.experts; ++expert) {
      std::size_t copies = 0;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        copies += nodes.held(i)[kGrid.Index({layer, expert})];
      }
      EXPECT_GE(copies, 2u) << layer << " " << expert;
    }
  }
}

TEST(NodeCoreWithStore, WhoLeadsNoMoreIsSaid) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kSecond);
  nodes.store().Stop();
  nodes.Run(60 * kSecond);
  EXPECT_THAT(nodes.said(), Contains(HasSubstr("leads no more")));
}

TEST(NodeCoreWithStore, AnotherLeadsWhenALeaderDiesAndKnowsWhatUsersActivated) {
  SimulatedNodes nodes({.most_held = 4, .has_store = true});
  nodes.Run(20 * kSecond);
  const std::size_t first = LeaderOf(nodes);
  const std::size_t user = (first + 1) % nodes.size();
  std::vector<std::uint32_t> uses(kGrid.Count(), 1);
  for (const std::uint32_t expert : {4u, 5u}) {
    for (const std::uint32_t layer : {1u, 2u}) uses[kGrid.Index({layer, expert})] = 1'000'000;
  }
  nodes.core(user)->OnActivity(uses, nodes.now());
  nodes.Run(60 * kSecond);
  const std::uint64_t epoch = nodes.core(user)->plan()->epoch;
  nodes.Kill(first);
  nodes.Run(150 * kSecond);
  EXPECT_NE(LeaderOf(nodes), first);
  EXPECT_GT(nodes.core(user)->plan()->epoch, epoch);
  EXPECT_EQ(nodes.core(user)->plan()->nodes.size(), 2u);
  for (const std::uint32_t layer : {1u, 2u}) {
    for (const std::uint32_t expert : {4u, 5u}) {
      EXPECT_EQ(nodes.held(user)[kGrid.Index({layer, expert})], 1) << layer << " " << expert;
    }
  }
  nodes.Start(first);
  nodes.Run(60 * kSecond);
  ExpectWell(nodes);
}

TEST(NodeCoreWithStore, WhileTheStoreIsAwayNodesGoOnByTheLastPlanAndNobodyLeads) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kSecond);
  const std::uint64_t epoch = nodes.core(1)->plan()->epoch;
  nodes.store().Stop();
  nodes.Run(300 * kSecond);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_FALSE(nodes.core(i)->leads());
    EXPECT_EQ(nodes.core(i)->Peers().size(), 2u);
    EXPECT_EQ(nodes.core(i)->plan()->epoch, epoch);
  }
  nodes.store().Start();
  nodes.Run(60 * kSecond);
  ExpectWell(nodes);
  (void)LeaderOf(nodes);
}

TEST(NodeCoreWithStore, ALinkThatBreaksWhileTheStoreIsAwayIsDialledAgain) {
  SimulatedNodes nodes({.has_store = true});
  nodes.Run(30 * kSecond);
  nodes.store().Stop();
  nodes.Run(30 * kSecond);
  nodes.CutAny();
  nodes.Run(kSecond);
  nodes.Mend();
  nodes.Run(10 * kSecond);
  ExpectWell(nodes);
}

// A node that leads alone, by a store that a test plays itself.
class NodeCoreThatLeads : public testing::Test {
 protected:
  NodeCoreThatLeads()
      : core_({.hello = {.start_id = 1,
                         .model = {7, 8},
                         .grid = kGrid,
                         .width = 64,
                         .cluster = "lab",
                         .node = "a",
                         .address = "a:1"},
               .expert_bytes = 100,
               .most_held = 6,
               .held = std::vector<std::uint8_t>(kGrid.Count())},
              {.addresses = {}, .planner = {}}, 0) {
    core_.OnMembers({"a:1"});
    core_.OnLeader(NodeLeader{.node = "a", .address = "a:1", .self = true}, 0);
  }

  // Lets time go on until it wants a plan stored, a second at a time; how many that took.
  int SecondsToAPlan() {
    for (int seconds = 1; seconds < 1000; ++seconds) {
      core_.OnTime(now_ += kSecond);
      for (int round = 0; round < 2; ++round) {
        for (NodeAction& action : core_.TakeActions()) {
          if (std::holds_alternative<node_action::WritePlan>(action)) return seconds;
          if (auto* choose = std::get_if<node_action::Choose>(&action)) {
            core_.OnPlanChosen(ChoosePlan(choose->job), now_);
          }
        }
      }
    }
    return 1000;
  }

  NodeCore core_;
  Nanos now_ = 0;
};

TEST_F(NodeCoreThatLeads, APlanThatTheStoreDidNotTakeIsTriedAgainSoon) {
  EXPECT_LT(SecondsToAPlan(), 10);
  core_.OnPlanWritten(Error(Code::kUnavailable, "the store is away"), now_);
  EXPECT_LT(SecondsToAPlan(), 10);
}

TEST_F(NodeCoreThatLeads, APlanThatIsTooLargeForTheStoreIsSaidOnce) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_LT(SecondsToAPlan(), 1000);
    core_.OnPlanWritten(InvalidArgument("plan not written: too large"), now_);
    int said = 0;
    for (const NodeAction& action : core_.TakeActions()) {
      said += std::holds_alternative<node_action::Say>(action) ? 1 : 0;
    }
    EXPECT_EQ(said, i == 0 ? 1 : 0);
    EXPECT_THAT(core_.look()->unwritten, HasSubstr("too large"));
  }
  EXPECT_EQ(core_.plans_unwritten(), 3u);
  EXPECT_GT(SecondsToAPlan(), 60);  // it is not tried every few seconds
}

class NodeCoreAlone : public testing::Test {
 protected:
  NodeCoreAlone()
      : core_({.hello = {.start_id = 1,
                         .grid = kGrid,
                         .width = 64,
                         .cluster = "lab",
                         .node = "a",
                         .address = "a:1"},
               .held = std::vector<std::uint8_t>(kGrid.Count())},
              {.addresses = {"a:1", "b:1"}}, 0) {}

  std::size_t Closed() {
    std::size_t closed = 0;
    for (const NodeAction& action : core_.TakeActions()) {
      closed += std::holds_alternative<node_action::CloseLink>(action) ? 1 : 0;
      if (const auto* broken = std::get_if<node_action::BreakLink>(&action)) {
        ++closed;
        why_ = DecodePeerRefused(broken->frame).value();
      }
    }
    return closed;
  }
  // Of another node that would fit.
  PeerHello Other() const {
    return {
        .start_id = 8, .grid = kGrid, .width = 64, .cluster = "lab", .node = "b", .address = "b:1"};
  }

  static PeerIdentity Plain() { return {.address = {}, .names = {}}; }
  static PeerIdentity Secure(std::vector<std::string> names) {
    return {.address = {}, .secure = true, .names = std::move(names)};
  }

  NodeCore core_;
  PeerRefused why_;  // of the last link that was broken
};

TEST_F(NodeCoreAlone, NothingIsAnsweredBeforeTheHello) {
  core_.OnLinkOpened(1, Plain(), 0);
  EXPECT_FALSE(core_.IsPeer(1));
  core_.OnFrame(1, Encode(PeerPing{.token = 1}), 0);
  EXPECT_EQ(Closed(), 1u);
}

TEST_F(NodeCoreAlone, AFrameThatCannotBeReadEndsTheLink) {
  core_.OnLinkOpened(1, Plain(), 0);
  core_.OnFrame(1, std::vector<std::byte>(3, std::byte{0xee}), 0);
  EXPECT_EQ(Closed(), 1u);
}

TEST_F(NodeCoreAlone, APeerSaysWhoItIsOnce) {
  core_.OnLinkOpened(1, Plain(), 0);
  core_.OnFrame(1, Encode(Other()), 0);
  EXPECT_TRUE(core_.IsPeer(1));
  PeerHello another = Other();
  another.node = "c";
  core_.OnFrame(1, Encode(another), 0);
  EXPECT_EQ(Closed(), 1u);
  EXPECT_FALSE(core_.IsPeer(1));
}

TEST_F(NodeCoreAlone, APeersCertificateMustNameItsAddress) {
  core_.OnLinkOpened(1, Secure({"b", "10.0.0.1"}), 0);
  core_.OnFrame(1, Encode(Other()), 0);
  EXPECT_TRUE(core_.IsPeer(1));
  core_.OnLinkOpened(2, Secure({"c"}), 0);
  core_.OnFrame(2, Encode(Other()), 0);
  EXPECT_FALSE(core_.IsPeer(2));
  EXPECT_EQ(Closed(), 1u);
  EXPECT_EQ(why_.reason, PeerRefused::Reason::kOtherCertificate);
  // Whoever has shown a certificate must be named in it, or anybody with one could say that it is
  // any node.
  core_.OnLinkOpened(3, Secure({}), 0);
  core_.OnFrame(3, Encode(Other()), 0);
  EXPECT_FALSE(core_.IsPeer(3));
  EXPECT_EQ(why_.reason, PeerRefused::Reason::kOtherCertificate);
}

TEST_F(NodeCoreAlone, AnEpochThatLeavesNoneToComeIsRefused) {
  core_.OnLinkOpened(1, Plain(), 0);
  PeerHello hello = Other();
  hello.plan_epoch = ~std::uint64_t{0};
  core_.OnFrame(1, Encode(hello), 0);
  EXPECT_EQ(Closed(), 1u);
}

TEST_F(NodeCoreAlone, ANodeThatDialsItselfHangsUp) {
  core_.OnLinkOpened(1, Plain(), 0);
  core_.OnLinkOpened(2, Plain(), 0);
  std::vector<std::byte> hello;
  for (const NodeAction& action : core_.TakeActions()) {
    if (const auto* send = std::get_if<node_action::Send>(&action)) hello = send->frame;
  }
  core_.OnFrame(1, hello, 0);
  EXPECT_EQ(Closed(), 1u);
  EXPECT_FALSE(core_.IsPeer(1));
}

// Links break, nodes die and come back in any order; when it is over, all is well again, and at no
// time does a node hold more than it may, but for the one that it swaps, or take up an older plan.
TEST(NodeCoreSeeds, TheClusterIsWellAgainAfterAnyFaults) {
  const std::uint64_t first = TestSeed();
  for (std::uint64_t seed = first; seed < first + TestCases(kSanitized ? 150 : 10'000); ++seed) {
    SCOPED_TRACE(seed);
    const bool has_store = seed % 2 == 0;
    SimulatedNodes nodes(
        {.nodes = 2 + seed % 3, .most_held = 5, .seed = seed, .has_store = has_store});
    std::map<std::size_t, std::uint64_t> epochs;
    FakeKvState backup = nodes.store().state();
    for (int step = 0; step < 25; ++step) {
      const std::size_t any = nodes.rng().Below(nodes.size());
      switch (nodes.rng().Below(has_store ? 11 : 6)) {
        case 0:
          nodes.CutAny();
          break;
        case 1:
          if (nodes.core(any)) nodes.Kill(any), epochs.erase(any);
          break;
        case 2:
          if (!nodes.core(any)) nodes.Start(any);
          break;
        case 3:
          nodes.Mend();
          break;
        case 6:
          nodes.store().Stop();
          break;
        case 7:
          nodes.store().Start();
          break;
        case 8:
          backup = nodes.store().state();
          break;
        case 9:
          nodes.store().Stop();
          nodes.store().Restore(backup);
          nodes.store().Start();
          break;
        case 10:
          nodes.store().set_loss(0.2 * nodes.rng().Uniform());
          break;
        default:
          nodes.Run(static_cast<Nanos>(nodes.rng().Below(4000)) * SimulatedNodes::kMs);
      }
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes.core(i)) continue;
        ASSERT_LE(CountOf(nodes.held(i)), 5u + HoldingFacts::kSwapSlots);
        if (!nodes.core(i)->plan()) continue;
        ASSERT_GE(nodes.core(i)->plan()->epoch, epochs[i]);
        epochs[i] = nodes.core(i)->plan()->epoch;
      }
    }
    nodes.store().set_loss(0);
    nodes.store().Start();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes.core(i)) nodes.Start(i);
    }
    for (int i = 0; i < (has_store ? 20 : 5); ++i) {
      nodes.Run(5 * kSecond);
      nodes.Mend();
    }
    nodes.Run(40 * kSecond);
    ExpectWell(nodes);
    if (has_store) (void)LeaderOf(nodes);
    EXPECT_THAT(nodes.failed(), IsEmpty());
    if (HasFailure()) {
      for (const std::string& line : nodes.said()) ADD_FAILURE() << line;
      return;
    }
  }
}

}  // namespace
}  // namespace troupe
