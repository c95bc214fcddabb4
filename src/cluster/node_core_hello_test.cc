// One node alone, and the frames that strangers may send it: who becomes a peer, and whose link
// ends.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/node_core.h"
#include "cluster/wire/ping.h"

namespace troupe {
namespace {

constexpr ExpertGrid kHelloGrid{.layers = 3, .experts = 6};

class NodeCoreAlone : public testing::Test {
 protected:
  NodeCoreAlone()
      : core_({.hello = {.start_id = 1,
                         .grid = kHelloGrid,
                         .width = 64,
                         .cluster = "lab",
                         .node = "a",
                         .address = "a:1"},
               .held = std::vector<std::uint8_t>(kHelloGrid.Count())},
              {.addresses = {"a:1", "b:1"}}, 0) {}

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
  PeerHello Other() const {
    return {.start_id = 8,
            .grid = kHelloGrid,
            .width = 64,
            .cluster = "lab",
            .node = "b",
            .address = "b:1"};
  }

  static PeerIdentity Plain() { return {.address = {}, .names = {}}; }
  static PeerIdentity Secure(std::vector<std::string> names) {
    return {.address = {}, .secure = true, .names = std::move(names)};
  }

  NodeCore core_;
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

}  // namespace
}  // namespace troupe
