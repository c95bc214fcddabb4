#include "cluster/wire/hello.h"

#include <gtest/gtest.h>

#include <utility>

#include "cluster/wire/random_messages_for_test.h"
#include "cluster/wire/wire_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

WireFrame SomeHello() {
  Rng rng(TestSeed());
  return Encode(RandomMessages(rng).Hello());
}

constexpr std::size_t kVersionAt = 9, kLayersAt = 43;

TEST(Hello, OfAnotherVersionIsToldApartFromABadOne) {
  WireFrame frame = SomeHello();
  frame[kVersionAt] = std::byte{99};
  frame.resize(kVersionAt + 2);  // what follows may be anything
  EXPECT_EQ(
      DecodePeerHello(frame).status(),
      Status(Code::kUnimplemented, "hello, byte 9: version of the wire: 99 found, 4 expected"));
}

TEST(Hello, OfSomethingElseIsRefused) {
  WireFrame frame = SomeHello();
  frame[3] = std::byte{'x'};
  EXPECT_EQ(DecodePeerHello(frame).status(),
            DataLoss("hello, byte 1: magic: other bytes found, TRPPEERS expected"));
}

TEST(Hello, RefusesModelsThatNobodyHas) {
  WireFrame frame = SomeHello();
  for (const auto& [layers, experts] :
       {std::pair{"00000000", "01000000"}, std::pair{"01000000", "00000000"},
        std::pair{"01100000", "01000000"}, std::pair{"01000000", "01000100"},
        std::pair{"00100000", "01010000"}, std::pair{"ffffffff", "ffffffff"}}) {
    std::ranges::copy(FrameOfHex(std::string(layers) + experts), frame.begin() + kLayersAt);
    EXPECT_EQ(DecodePeerHello(frame).status().code(), Code::kDataLoss) << layers << experts;
  }
  std::ranges::copy(FrameOfHex("0010000000010000"), frame.begin() + kLayersAt);
  EXPECT_TRUE(DecodePeerHello(frame).ok()) << "2^20 experts are allowed";
}

TEST(Hello, IsPrintedInALine) {
  const PeerHello hello{.start_id = 0xab,
                        .model = {1, 2},
                        .arithmetic = 3,
                        .grid = {24, 60},
                        .width = 2048,
                        .form = RowForm::kInt8,
                        .plan_epoch = 7,
                        .cluster = "lab",
                        .node = "n1",
                        .address = "10.0.0.1:7001"};
  EXPECT_EQ(
      ToString(hello),
      "hello: node n1 of cluster lab at 10.0.0.1:7001, start 00000000000000ab, model "
      "00000000000000010000000000000002, arithmetic 0000000000000003, 24 layers of 60 experts, "
      "rows of 2048 8-bit codes, plan 7");
}

TEST(Refused, OfAReasonThatIsNotKnownYetIsReadByItsText) {
  EXPECT_EQ(DecodePeerRefused(FrameOfHex("02 c8 0300 6e6577")).value(),
            (PeerRefused{PeerRefused::Reason::kOther, "new"}));
}

TEST(Refused, ForAnyReasonIsPrintedAndSent) {
  for (unsigned i = 0; i <= 8; ++i) {
    const PeerRefused refused{static_cast<PeerRefused::Reason>(i), "why"};
    EXPECT_NE(ToString(refused.reason), "unknown") << i;
    EXPECT_EQ(DecodePeerRefused(Encode(refused)).value(), refused);
  }
  EXPECT_EQ(ToString(PeerRefused{PeerRefused::Reason::kNameTaken, "n1 is at 10.0.0.2"}),
            "refused: name taken: n1 is at 10.0.0.2");
}

TEST(Refused, SendsATextOfSeveralLinesAsOne) {
  const auto sent = Encode(PeerRefused{PeerRefused::Reason::kBadMessage, "a\nb"});
  EXPECT_EQ(DecodePeerRefused(sent)->text, "a b");
}

}  // namespace
}  // namespace troupe
