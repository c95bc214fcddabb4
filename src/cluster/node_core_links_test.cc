// Two nodes that have dialled each other: which of their two links is used and kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/node_core.h"
#include "cluster/wire/ping.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ExpertGrid kTwiceGrid{.layers = 3, .experts = 6};
constexpr Nanos kTwiceSecond = 1'000'000'000;
constexpr LinkId kDialled = 1, kAccepted = 2;

// Node b of a and b, or of b and c: its peer has the name before its own, or the one after it.
class DialledTwice : public testing::Test {
 protected:
  void Open(const std::string& peer) {
    peer_ = peer;
    core_.emplace(
        NodeSelf{.hello = HelloOf("b", 1), .held = std::vector<std::uint8_t>(kTwiceGrid.Count())},
        NodeOptions{.addresses = {"b:1", peer + ":1"}}, 0);
    EXPECT_THAT(Dialled(), ElementsAre(peer + ":1"));
  }
  void Come(LinkId link, Nanos now) {
    core_->OnLinkOpened(link, {.address = {}, .dialled = link == kDialled, .names = {}}, now);
    core_->OnFrame(link, Encode(HelloOf(peer_, 2)), now);
    core_->OnFrame(link, Encode(PeerPong{}), now);
    Look();
  }
  void Wait(Nanos until) {
    core_->OnTime(until);
    Look();
  }
  // What is told of links since the last time.
  void Look() {
    for (const NodeAction& action : core_->TakeActions()) {
      if (const auto* came = std::get_if<node_action::PeerCame>(&action)) used_ = came->link;
      if (const auto* left = std::get_if<node_action::PeerLeft>(&action))
        left_.push_back(left->link);
      if (const auto* dial = std::get_if<node_action::Dial>(&action))
        dials_.push_back(dial->address);
      if (const auto* end = std::get_if<node_action::HangUp>(&action))
        ends_.push_back(end->address);
    }
  }
  std::vector<std::string> Dialled() {
    Look();
    return std::exchange(dials_, {});
  }
  std::vector<std::string> HungUp() {
    Look();
    return std::exchange(ends_, {});
  }
  static PeerHello HelloOf(const std::string& node, std::uint64_t start) {
    return {.start_id = start,
            .grid = kTwiceGrid,
            .width = 64,
            .cluster = "lab",
            .node = node,
            .address = node + ":1"};
  }

  std::string peer_;
  std::optional<NodeCore> core_;
  LinkId used_ = 0;
  std::vector<LinkId> left_;
  std::vector<std::string> dials_, ends_;
};

TEST_F(DialledTwice, TheLinkOfTheOneWithTheFirstNameIsUsedWhicheverCameFirst) {
  for (const bool is_first : {true, false}) {
    for (const LinkId first : {kDialled, kAccepted}) {
      SCOPED_TRACE(is_first);
      SCOPED_TRACE(first);
      Open(is_first ? "c" : "a");
      Come(first, 0);
      EXPECT_EQ(used_, first) << "the only one";
      Come(first == kDialled ? kAccepted : kDialled, 0);
      EXPECT_EQ(used_, is_first ? kDialled : kAccepted);
      EXPECT_EQ(core_->links(), 2u);
    }
  }
}

TEST_F(DialledTwice, WhoHasDialledTheOtherOneHangsUpAndDialsAgainOnceThatIsLost) {
  Open("a");
  Come(kDialled, 0);
  Come(kAccepted, 0);
  Wait(4 * kTwiceSecond);
  EXPECT_THAT(HungUp(), IsEmpty()) << "calls may be under way on it";
  Wait(6 * kTwiceSecond);
  EXPECT_THAT(HungUp(), ElementsAre("a:1"));
  EXPECT_EQ(core_->links_spared(), 1u);
  left_.clear();
  core_->OnLinkClosed(kDialled, "closed by this node", 6 * kTwiceSecond);
  Wait(7 * kTwiceSecond);
  EXPECT_THAT(left_, IsEmpty());
  EXPECT_THAT(Dialled(), IsEmpty());
  EXPECT_EQ(core_->links(), 1u);
  core_->OnLinkClosed(kAccepted, "lost", 8 * kTwiceSecond);
  EXPECT_THAT(Dialled(), ElementsAre("a:1"));
}

TEST_F(DialledTwice, WhoHasTheFirstNameKeepsItsOwnAndCountsTheOtherOneAsSpared) {
  Open("c");
  Come(kAccepted, 0);
  Come(kDialled, 0);
  Wait(60 * kTwiceSecond);
  EXPECT_THAT(HungUp(), IsEmpty());
  core_->OnLinkClosed(kAccepted, "the peer has hung up", 60 * kTwiceSecond);
  EXPECT_EQ(core_->links_spared_by_peers(), 1u);
  EXPECT_THAT(core_->Peers(), ElementsAre("c"));
}

TEST_F(DialledTwice, ALinkThatThisNodeBreaksIsNotSparedByItsPeer) {
  Open("c");
  Come(kAccepted, 0);
  Come(kDialled, 0);
  core_->OnFrame(kAccepted, std::vector<std::byte>(3, std::byte{0xee}), 0);
  core_->OnLinkClosed(kAccepted, "broken", 0);
  EXPECT_EQ(core_->links_spared_by_peers(), 0u);
  EXPECT_THAT(core_->Peers(), ElementsAre("c"));
}

// It may be that the peer reaches nobody.
TEST_F(DialledTwice, TheOnlyLinkIsKeptWhoeverHasDialledIt) {
  for (const char* peer : {"a", "c"}) {
    for (const LinkId link : {kDialled, kAccepted}) {
      Open(peer);
      Come(link, 0);
      Wait(60 * kTwiceSecond);
      EXPECT_EQ(core_->links(), 1u);
      EXPECT_THAT(core_->Peers(), ElementsAre(peer));
      EXPECT_TRUE(HungUp().empty() || link == kAccepted);
    }
  }
}

}  // namespace
}  // namespace troupe
