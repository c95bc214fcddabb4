// The bytes of each message, written out: whoever changes them changes the format, and has to raise
// kWireVersion.
#include <gtest/gtest.h>

#include <array>

#include "cluster/wire/peer_message.h"
#include "cluster/wire/wire_for_test.h"

namespace troupe {
namespace {

std::string Times(int count, std::string_view hex) {
  std::string text;
  for (int i = 0; i < count; ++i) text += hex;
  return text;
}

void ExpectFrame(const PeerMessage& message, const std::string& hex) {
  const WireFrame golden = FrameOfHex(hex);
  EXPECT_EQ(HexOfFrame(EncodePeerMessage(message)), HexOfFrame(golden)) << ToString(message);
  const auto read = DecodePeerMessage(golden);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, message) << ToString(*read);
}

TEST(GoldenFrames, OfHelloAndRefused) {
  ExpectFrame(PeerHello{.start_id = 0x1122334455667788,
                        .model = {0x0102030405060708, 0x090a0b0c0d0e0f10},
                        .arithmetic = 0xa1a2a3a4a5a6a7a8,
                        .grid = {24, 60},
                        .width = 2048,
                        .form = RowForm::kInt8,
                        .plan_epoch = 7,
                        .cluster = "lab",
                        .node = "n1",
                        .address = "10.0.0.1:7001"},
              "01 5452505045455253 0400 8877665544332211 0807060504030201 100f0e0d0c0b0a09"
              "a8a7a6a5a4a3a2a1 18000000 3c000000 01 00080000 0700000000000000"
              "0300 6c6162 0200 6e31 0d00 31302e302e302e313a37303031");
  ExpectFrame(PeerRefused{PeerRefused::Reason::kOtherModel, "no"}, "02 02 0200 6e6f");
}

TEST(GoldenFrames, OfAskIn8Bits) {
  const std::array<std::uint16_t, 2> both = {0, 1};
  std::array<ActivationGroup, 2> groups = {};
  groups[0].scale = 0.5f;
  for (std::size_t i = 0; i < kGroupCols; ++i) {
    groups[0].codes[i] = static_cast<std::int8_t>(i + 1);
    groups[1].codes[i] = -1;
  }
  groups[1].scale = 1.0f;
  std::vector<std::byte> rows(2 * kWireGroupBytes);
  PackRow(groups, rows);
  ExpectFrame(PeerAsk{.call = 5,
                      .layer = 3,
                      .deadline_micros = 2000,
                      .experts = {{9, both}, {4, std::span(both).last(1)}},
                      .answer = RowForm::kInt8,
                      .rows = {RowForm::kInt8, 32, 2, rows}},
              "03 01 0300 d0070000 0500000000000000 20000000 0200 0200 01 000000"
              "0900 0200 0400 0100 0000 0100 0100 0000"
              "0000003f 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
              "0000803f" +
                  Times(32, "ff"));
}

TEST(GoldenFrames, OfAskInFloats) {
  const std::array<std::uint16_t, 2> both = {0, 1};
  const WireFrame rows = FrameOfHex("0000803f 000000c0");
  ExpectFrame(PeerAsk{.call = 5, .experts = {{65535, both}}, .rows = {RowForm::kFloat, 1, 2, rows}},
              "03 00 0000 00000000 0500000000000000 01000000 0200 0100 00 000000"
              "ffff 0200 0000 0100 0000803f 000000c0");
}

TEST(GoldenFrames, OfAnswer) {
  const WireFrame rows = FrameOfHex("0000803f 000000c0 0000003f 0000c07f");
  ExpectFrame(PeerAnswer{.call = 5,
                         .last = true,
                         .waited_micros = 16,
                         .computed_micros = 256,
                         .waiting = 3,
                         .experts = {{9, 1}, {4, 1}},
                         .rows = {RowForm::kFloat, 2, 2, rows}},
              "04 01 0200 00 000000 02000000 0500000000000000 10000000 00010000 03000000"
              "0900 0100 0400 0100 0000803f 000000c0 0000003f 0000c07f");
}

TEST(GoldenFrames, OfAnswersInFewerBits) {
  const WireFrame rounded = FrameOfHex("803f 00c0 c07f");
  ExpectFrame(
      PeerAnswer{
          .call = 5, .last = true, .experts = {{9, 1}}, .rows = {RowForm::kBf16, 3, 1, rounded}},
      "04 01 0100 02 000000 03000000 0500000000000000" + Times(12, "00") +
          "0900 0100 803f 00c0 c07f");
  const WireFrame codes = FrameOfHex("0000003f" + Times(32, "81"));
  ExpectFrame(
      PeerAnswer{
          .call = 5, .last = true, .experts = {{9, 1}}, .rows = {RowForm::kInt8, 32, 1, codes}},
      "04 01 0100 01 000000 20000000 0500000000000000" + Times(12, "00") + "0900 0100 0000003f" +
          Times(32, "81"));
}

TEST(GoldenFrames, OfAskRefusedAndCancel) {
  ExpectFrame(PeerAskRefused{5, PeerAskRefused::Reason::kNotHeld, "gone"},
              "05 02 0500000000000000 0400 676f6e65");
  ExpectFrame(PeerCancel{5}, "06 0500000000000000");
}

TEST(GoldenFrames, OfHoldings) {
  PeerHoldings holdings{.epoch = 7, .sequence = 2, .held = ExpertBits({2, 5})};
  for (const ExpertId id : {ExpertId{0, 0}, ExpertId{1, 4}, ExpertId{1, 0}}) holdings.held.Add(id);
  ExpectFrame(holdings, "07 0700000000000000 0200000000000000 02000000 05000000 21 02");
}

TEST(GoldenFrames, OfPingAndPong) {
  ExpectFrame(PeerPing{0x0123456789abcdef}, "08 efcdab8967452301");
  ExpectFrame(PeerPong{0x0123456789abcdef, 4}, "09 efcdab8967452301 04000000");
}

TEST(GoldenFrames, OfFetchPieceAndFetchRefused) {
  ExpectFrame(PeerFetch{6, {3, 9}, 4096}, "0a 0600000000000000 03000000 09000000 0010000000000000");
  const WireFrame data = FrameOfHex("aabbcc");
  ExpectFrame(PeerPiece{6, {3, 9}, 4099, 4096, 0xfedcba9876543210, data},
              "0b 0600000000000000 03000000 09000000 0310000000000000 0010000000000000"
              "1032547698badcfe aabbcc");
  ExpectFrame(PeerFetchRefused{6, PeerFetchRefused::Reason::kBusy, "later"},
              "0c 01 0600000000000000 0500 6c61746572");
}

TEST(GoldenFrames, OfReportWithAllCountsAndWithFew) {
  ExpectFrame(PeerReport{.seconds = 60,
                         .grid = {1, 2},
                         .activations = {3, 4},
                         .expert_memory = 1_GiB,
                         .measured = {.disk_bytes_per_second = 1e9,
                                      .seconds_an_expert = 0.5,
                                      .seconds_a_row = 0.25,
                                      .seconds_a_remote_row = 0.125,
                                      .links = {{"n2", 0.5, 1024}}}},
              "0d 0000000000004e40 0000004000000000 0000000065cdcd41 000000000000e03f"
              "000000000000d03f 000000000000c03f 01000000 02000000 00 03000000 04000000"
              "0100 0200 6e32 000000000000e03f 0000000000009040");
  ExpectFrame(PeerReport{.grid = {1, 8}, .activations = {0, 0, 0, 0, 0, 0, 5, 0}},
              "0d" + Times(48, "00") + "01000000 08000000 01 01000000 06000000 05000000 0000");
}

TEST(GoldenFrames, OfAccusation) {
  ExpectFrame(PeerAccusation{7, 3, 9}, "0f 0700000000000000 03000000 09000000");
}

TEST(GoldenFrames, OfPlanNotice) {
  ExpectFrame(PeerPlanNotice{7, "{}"}, "0e 0700000000000000 7b7d");
}

}  // namespace
}  // namespace troupe
