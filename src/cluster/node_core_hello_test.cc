// One node alone, and the frames that strangers may send it: who becomes a peer, and whose link
// ends.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/node_core.h"
#include "cluster/plan/cluster_plan.h"
#include "cluster/wire/ping.h"

namespace troupe {
namespace {

constexpr ExpertGrid kHelloGrid{.layers = 3, .experts = 6};

class NodeCoreAlone : public testing::Test {
 protected:
  static NodeCore Core() {
    return NodeCore({.hello = {.start_id = 1,
                               .grid = kHelloGrid,
                               .width = 64,
                               .cluster = "lab",
                               .node = "a",
                               .address = "a:1"},
                     .held = std::vector<std::uint8_t>(kHelloGrid.Count())},
                    {.addresses = {"a:1", "b:1"}}, 0);
  }

  std::size_t Closed() {
    std::size_t closed = 0;
    for (const NodeAction& action : core_.TakeActions()) {
      sent_ += std::holds_alternative<node_action::Send>(action) ? 1 : 0;
      closed += std::holds_alternative<node_action::CloseLink>(action) ? 1 : 0;
      if (const auto* broken = std::get_if<node_action::BreakLink>(&action)) {
        ++closed;
        why_ = DecodePeerRefused(broken->frame).value();
      }
    }
    return closed;
  }
  // Of another node that would fit.
  PeerHello Other(std::uint64_t start = 8) const {
    return {.start_id = start,
            .grid = kHelloGrid,
            .width = 64,
            .cluster = "lab",
            .node = "b",
            .address = "b:1"};
  }

  // It starts anew, and is here by link 2.
  void ComeTwice() {
    for (const LinkId link : {1, 2}) {
      core_.OnLinkOpened(link, Plain(), 0);
      core_.OnFrame(link, Encode(Other(7 + link)), 0);
      core_.OnFrame(link, Encode(PeerPong{}), 0);
    }
    (void)Closed();
  }

  static PeerIdentity Plain() { return {.address = {}, .names = {}}; }
  static PeerIdentity Secure(std::vector<std::string> names) {
    return {.address = {}, .secure = true, .names = std::move(names)};
  }

  NodeCore core_ = Core();
  std::size_t sent_ = 0;  // frames, as far as Closed has looked
  PeerRefused why_;       // of the last link that was broken
};

TEST_F(NodeCoreAlone, NothingIsAnsweredBeforeTheHello) {
  core_.OnLinkOpened(1, Plain(), 0);
  EXPECT_FALSE(core_.IsPeer(1));
  EXPECT_EQ(Closed(), 0u);
  EXPECT_EQ(sent_, 1u) << "its own hello";
  core_.OnFrame(1, Encode(PeerPing{.token = 1}), 0);
  EXPECT_EQ(Closed(), 1u);
  EXPECT_EQ(sent_, 1u);
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

TEST_F(NodeCoreAlone, SaysWhatIsWrongWithACertificate) {
  const auto why = [](const char* said) {
    NodeCore core = Core();
    core.OnDistrusted("b:1", said);
    const std::vector<NodeAction> actions = core.TakeActions();
    const auto* const fail =
        actions.empty() ? nullptr : std::get_if<node_action::Fail>(&actions.back());
    return fail == nullptr ? std::string() : fail->why;
  };
  EXPECT_EQ(
      why("certificate verify failed"),
      "this node and the one at b:1 have certificates of different authorities, or that one's "
      "has expired: certificate verify failed");
  EXPECT_EQ(why("sslv3 alert certificate expired"),
            "the node at b:1 finds this node's certificate expired: it, or one of both clocks: "
            "sslv3 alert certificate expired");
  EXPECT_EQ(why("Peer name b is not in peer certificate"),
            "the certificate of the node at b:1 is not of that address: Peer name b is not in peer "
            "certificate");
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

TEST_F(NodeCoreAlone, AnOlderPlanThanTheOneInForceIsNotFollowed) {
  const auto take = [this](std::uint64_t epoch) {
    const ClusterPlan plan{
        .epoch = epoch,
        .model = ModelText(Other()),
        .nodes = {{.name = "a",
                   .held = std::vector<std::vector<std::uint32_t>>(kHelloGrid.layers),
                   .come = {},
                   .go = {}}}};
    core_.OnPlan(epoch, ToJson(plan, kHelloGrid));
    return core_.plan() ? core_.plan()->epoch : 0;
  };
  EXPECT_EQ(take(7), 7u);
  EXPECT_EQ(take(6), 7u);
  EXPECT_EQ(take(8), 8u);
}

TEST_F(NodeCoreAlone, TheStartOfAnotherNodeIsRefusedThoughThatIsAway) {
  core_.OnLinkOpened(1, Secure({"b"}), 0);
  core_.OnFrame(1, Encode(Other()), 0);
  core_.OnFrame(1, Encode(PeerPong{}), 0);
  PeerHello renamed = Other();
  renamed.node = "c";
  PeerHello moved = Other();
  moved.address = "c:1";
  PeerHello own = Other();
  own.start_id = 1;
  LinkId link = 1;
  for (const bool is_away : {false, true}) {
    if (is_away) core_.OnLinkClosed(1, "lost", 0);
    for (const PeerHello& hello : {renamed, moved, own}) {
      SCOPED_TRACE(is_away);
      core_.OnLinkOpened(++link, Secure({"b", "c"}), 0);
      core_.OnFrame(link, Encode(hello), 0);
      EXPECT_FALSE(core_.IsPeer(link)) << hello.node << " at " << hello.address;
      EXPECT_EQ(Closed(), 1u);
      EXPECT_EQ(why_.reason, PeerRefused::Reason::kBadMessage);
    }
  }
  core_.OnLinkOpened(++link, Secure({"b"}), 0);
  core_.OnFrame(link, Encode(Other()), 0);
  EXPECT_TRUE(core_.IsPeer(link)) << "it is there again";
}

TEST_F(NodeCoreAlone, AnswersOfAnEarlierLifeThrowOutTheOneThatIsHereNow) {
  ComeTwice();
  core_.OnWrongAnswer(8, {1, 2}, 0);
  EXPECT_EQ(Closed(), 1u);
  EXPECT_FALSE(core_.IsPeer(2));
  EXPECT_TRUE(core_.Peers().empty());
  core_.OnWrongAnswer(8, {1, 3}, 0);
  core_.OnWrongAnswer(9, {1, 3}, 0);
  EXPECT_EQ(core_.thrown_out().peers().size(), 1u);
}

TEST_F(NodeCoreAlone, OrRefuseItWhenItComes) {
  ComeTwice();
  core_.OnLinkClosed(2, "lost", 0);
  core_.OnWrongAnswer(8, {1, 2}, 0);
  EXPECT_EQ(core_.thrown_out().peers().size(), 1u);
  EXPECT_EQ(Closed(), 0u);
  core_.OnLinkOpened(3, Plain(), 0);
  core_.OnFrame(3, Encode(Other(9)), 0);
  EXPECT_FALSE(core_.IsPeer(3));
  EXPECT_EQ(Closed(), 1u);
  EXPECT_EQ(why_.reason, PeerRefused::Reason::kWrongAnswer);
}

TEST_F(NodeCoreAlone, WhoWasThrownOutStaysOutByAnotherPortOfItsHostAndNobodyElseDoes) {
  core_.OnLinkOpened(1, Secure({"b"}), 0);
  core_.OnFrame(1, Encode(Other()), 0);
  core_.OnFrame(1, Encode(PeerPong{}), 0);
  core_.OnWrongAnswer(8, {1, 2}, 0);
  struct Case {
    std::string node, address, certificate;
    bool is_let_in;
  };
  LinkId link = 1;
  for (const Case& c : {Case{"b", "b:2", "b", false}, Case{"d", "b:1", "b", false},
                        Case{"d", "b:2", "b", true},     // another node of that machine
                        Case{"b", "e:1", "e", true}}) {  // whose name the other one had taken
    PeerHello hello = Other(20 + link);
    hello.node = c.node;
    hello.address = c.address;
    core_.OnLinkOpened(++link, Secure({c.certificate}), 0);
    core_.OnFrame(link, Encode(hello), 0);
    EXPECT_EQ(core_.IsPeer(link), c.is_let_in) << c.node << " at " << c.address;
    core_.OnLinkClosed(link, "lost", 0);
  }
}

TEST_F(NodeCoreAlone, ANodeThatNoListHasIsSpokenOf) {
  core_.OnLinkOpened(1, Plain(), 0);
  PeerHello hello = Other();
  hello.address = "10.0.0.2:1";  // b's, in other words
  core_.OnFrame(1, Encode(hello), 0);
  core_.OnFrame(1, Encode(PeerPong{}), 0);
  bool is_said = false;
  for (const NodeAction& action : core_.TakeActions()) {
    const auto* say = std::get_if<node_action::Say>(&action);
    is_said |= say != nullptr &&
               say->text.find("which is none of --peers here: a:1, b:1") != std::string::npos;
  }
  EXPECT_TRUE(is_said);
}

TEST_F(NodeCoreAlone, WhatAnEarlierStartSaysCountsNoMore) {
  core_.OnLinkOpened(1, Plain(), 0);
  core_.OnFrame(1, Encode(Other()), 0);
  core_.OnFrame(1, Encode(PeerPong{}), 0);
  PeerHello anew = Other();
  anew.start_id = 9;
  core_.OnLinkOpened(2, Plain(), 0);
  core_.OnFrame(2, Encode(anew), 0);
  core_.OnFrame(2, Encode(PeerPong{}), 0);
  EXPECT_TRUE(core_.IsPeer(2));
  EXPECT_FALSE(core_.IsPeer(1)) << "its link is closed";
  EXPECT_EQ(Closed(), 1u);
  core_.OnFrame(1, std::vector<std::byte>(3, std::byte{0xee}), 0);
  EXPECT_EQ(Closed(), 0u) << "nobody reads it";
}

TEST_F(NodeCoreAlone, AnEpochThatALiarTellsLeavesRoomForTheNextPlans) {
  for (const std::uint64_t told : {kMostTellableEpoch, kMostTellableEpoch + 1, kMostEpoch}) {
    NodeCore core = Core();
    core.OnLinkOpened(1, Plain(), 0);
    PeerHello hello = Other();
    hello.plan_epoch = told;
    core.OnFrame(1, Encode(hello), 0);
    EXPECT_TRUE(core.IsPeer(1)) << told;
    (void)core.TakeActions();
    core.OnLinkOpened(2, Plain(), 0);
    const std::vector<NodeAction> actions = core.TakeActions();
    ASSERT_EQ(actions.size(), 1u);
    const Result<PeerMessage> own =
        DecodePeerMessage(std::get<node_action::Send>(actions.front()).frame);
    EXPECT_LE(std::get<PeerHello>(own.value()).plan_epoch, kMostTellableEpoch) << told;
  }
}

TEST_F(NodeCoreAlone, OneThatComesUnderEverNewNamesIsTakenInAsOftenAsIsAllowed) {
  const auto come = [this](LinkId link, const std::string& name) {
    PeerHello hello = Other(100 + link);
    hello.node = name;
    core_.OnLinkOpened(link, Plain(), 0);
    core_.OnFrame(link, Encode(hello), 0);
    const bool is_peer = core_.IsPeer(link);
    if (is_peer) core_.OnFrame(link, Encode(PeerPong{}), 0);
    core_.OnLinkClosed(link, "lost", 0);
    return is_peer;
  };
  LinkId link = 0;
  for (std::size_t i = 0; i + 1 < kMostPeerNames; ++i) {
    ASSERT_TRUE(come(++link, "b" + std::to_string(i))) << i;
  }
  (void)Closed();
  // Two more say hello before either of them has answered the ping.
  const LinkId last = ++link, too_many = ++link;
  for (const LinkId at_once : {last, too_many}) {
    PeerHello hello = Other(100 + at_once);
    hello.node = "at-once" + std::to_string(at_once);
    core_.OnLinkOpened(at_once, Plain(), 0);
    core_.OnFrame(at_once, Encode(hello), 0);
  }
  for (const LinkId at_once : {last, too_many}) core_.OnFrame(at_once, Encode(PeerPong{}), 0);
  EXPECT_EQ(Closed(), 1u);
  EXPECT_TRUE(core_.IsPeer(last));
  EXPECT_FALSE(core_.IsPeer(too_many));
  core_.OnLinkClosed(last, "lost", 0);
  EXPECT_FALSE(come(++link, "one-more"));
  EXPECT_EQ(Closed(), 1u);
  EXPECT_EQ(why_.reason, PeerRefused::Reason::kOther);
  EXPECT_NE(why_.text.find("has met peers of 1024 names"), std::string::npos) << why_.text;
  EXPECT_TRUE(come(++link, "b0")) << "it starts anew";
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

}  // namespace
}  // namespace troupe
