#include <gtest/gtest.h>

#include <limits>

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"
#include "cluster/wire/wire_for_test.h"
#include "cluster/wire/wire_text.h"

namespace troupe {
namespace {

constexpr auto kPing = PeerMessageKind::kPing;

TEST(Frame, ReadsWhatWasWritten) {
  FrameWriter out(kPing, 1 + 1 + 2 + 4 + 8 + 4 + 6);
  out.Put(std::uint8_t{1});
  out.Put(std::uint16_t{2});
  out.Put(3.5f);
  out.PutMeasure(4.25);
  out.PutName("ab");
  out.PutText("c d ");
  const WireFrame frame = std::move(out).Take();
  FrameReader in(kPing, frame);
  EXPECT_TRUE(in.ReadFlag("flag"));
  EXPECT_EQ(in.Read<std::uint16_t>("number"), 2);
  EXPECT_EQ(in.Read<float>("float"), 3.5f);
  EXPECT_EQ(in.ReadMeasure("measure"), 4.25);
  EXPECT_EQ(in.ReadName("name"), "ab");
  EXPECT_EQ(in.ReadText("text"), "c d ");
  EXPECT_EQ(in.Finish(), OkStatus());
}

TEST(Frame, KeepsTheFirstFaultAndReadsZerosAfterIt) {
  const WireFrame frame = FrameOfHex("08 07 0100 0200");
  FrameReader in(kPing, frame);
  EXPECT_FALSE(in.ReadFlag("flag"));
  EXPECT_EQ(in.Read<std::uint16_t>("number"), 0);
  EXPECT_TRUE(in.ReadBytes(1, "bytes").empty());
  EXPECT_TRUE(in.ReadArray<std::uint16_t>(1, "array").empty());
  EXPECT_EQ(in.Finish(), DataLoss("ping, byte 1: flag: 7 found, 0 or 1 expected"));
}

TEST(Frame, RefusesAnotherKindAndNone) {
  EXPECT_EQ(FrameReader(kPing, FrameOfHex("09")).Finish(),
            DataLoss("ping, byte 0: kind: 9 found, 8 expected"));
  EXPECT_EQ(FrameReader(kPing, {}).Finish(),
            DataLoss("ping, byte 0: kind: 0 bytes found, 1 expected"));
  EXPECT_EQ(KindOfFrame({}).status(), DataLoss("message, byte 0: kind: 0 bytes found, 1 expected"));
  EXPECT_EQ(KindOfFrame(FrameOfHex("10")).status(),
            DataLoss("message, byte 0: kind: 16 found, 1 to 15 expected"));
  EXPECT_FALSE(KindOfFrame(FrameOfHex("00")).ok());
  EXPECT_EQ(KindOfFrame(FrameOfHex("08")).value(), kPing);
}

TEST(Frame, SaysWhereItIsCutOff) {
  const WireFrame frame = FrameOfHex("08 0100 02");
  FrameReader in(kPing, frame);
  in.Read<std::uint16_t>("first");
  in.Read<std::uint64_t>("second");
  EXPECT_EQ(in.status(), DataLoss("ping, byte 3: second: 1 bytes found, 8 expected"));
}

TEST(Frame, RefusesBytesBehindTheLastField) {
  const WireFrame frame = FrameOfHex("08 0102");
  FrameReader in(kPing, frame);
  EXPECT_EQ(in.Finish(), DataLoss("ping, byte 1: end: 2 more bytes found, 0 expected"));
}

TEST(Frame, RefusesACountThatTheRestCannotHold) {
  const WireFrame frame = FrameOfHex("08 03000000 0000000000");
  FrameReader in(kPing, frame);
  EXPECT_EQ(in.ReadCount<std::uint32_t>("things", 2), 0u);
  EXPECT_EQ(in.status(),
            DataLoss("ping, byte 1: things: 3 found, at most 2 expected in the 5 bytes "
                     "that remain"));
  FrameReader fits(kPing, frame);
  EXPECT_EQ(fits.ReadCount<std::uint32_t>("things", 1), 3u);
}

TEST(Frame, RefusesLengthsThatWouldWrapAround) {
  const WireFrame frame = FrameOfHex("08 0000");
  FrameReader in(kPing, frame);
  EXPECT_TRUE(in.ReadBytes(std::numeric_limits<std::uint64_t>::max(), "bytes").empty());
  EXPECT_FALSE(in.ok());
}

TEST(Frame, RefusesMeasuresThatAreNone) {
  for (const char* bits :
       {"000000000000f07f", "000000000000f87f", "000000000000f0bf", "0000000000000080"}) {
    const WireFrame frame = FrameOfHex(std::string("08") + bits);
    FrameReader in(kPing, frame);
    EXPECT_EQ(in.ReadMeasure("speed"), 0) << bits;
    EXPECT_FALSE(in.ok()) << bits;
  }
}

TEST(Frame, PadsWithZerosAndAcceptsNothingElse) {
  FrameWriter out(kPing, 8);
  out.PutPadding();
  out.Put(std::uint32_t{5});
  WireFrame frame = std::move(out).Take();
  EXPECT_EQ(HexOfFrame(frame), "0800000005000000");
  frame[2] = std::byte{9};
  FrameReader in(kPing, frame);
  in.ReadPadding();
  EXPECT_EQ(in.status(), DataLoss("ping, byte 1: padding: 0x09 found, 0 expected"));
}

TEST(Frame, GivesNamesAndTextsThatStayOnTheirLine) {
  const auto text = [](const char* hex) {
    const WireFrame frame = FrameOfHex(hex);
    FrameReader in(kPing, frame);
    in.ReadText("text");
    return in.Finish();
  };
  const auto name = [](const char* hex) {
    const WireFrame frame = FrameOfHex(hex);
    FrameReader in(kPing, frame);
    in.ReadName("node");
    return in.Finish();
  };
  EXPECT_TRUE(text("08 0000").ok());
  EXPECT_TRUE(text("08 0400 6120c3a4").ok());
  EXPECT_EQ(text("08 0200 610a"),
            DataLoss("ping, byte 1: text: 2 bytes found, at most 1024 without "
                     "control characters expected"));
  EXPECT_FALSE(text("08 0300 6161").ok());
  EXPECT_TRUE(name("08 0200 6e31").ok());
  EXPECT_EQ(name("08 0200 6e20"), DataLoss("ping, byte 1: node: byte 0x20 found, printable ASCII "
                                           "without spaces expected"));
  EXPECT_EQ(name("08 0000"), DataLoss("ping, byte 1: node: 0 characters found, 1 to 255 expected"));
  EXPECT_FALSE(name("08 0200 c3a4").ok());
}

TEST(WireText, MakesAnyTextFit) {
  EXPECT_EQ(AsPeerText("two\nlines\x7f"), "two lines ");
  std::string wide(kMaxPeerTextBytes - 1, 'a');
  EXPECT_EQ(AsPeerText(wide + "\xc3\xa4"), wide) << "no half of a character";
  EXPECT_EQ(AsPeerText(wide + "bb"), wide + "b");
  EXPECT_TRUE(IsPeerText(AsPeerText(std::string(5000, '\x80'))));
}

TEST(WireText, KnowsNames) {
  EXPECT_TRUE(CheckPeerName("node", "edge-1.example:7001").ok());
  EXPECT_TRUE(CheckPeerName("node", std::string(255, 'n')).ok());
  for (const std::string& bad : {std::string(), std::string(256, 'n'), std::string("a b"),
                                 std::string("a\n"), std::string("\xff"), std::string("a\0", 2)}) {
    EXPECT_EQ(CheckPeerName("node", bad).code(), Code::kInvalidArgument) << bad;
  }
}

TEST(FrameDeathTest, AFrameOfAnotherLengthThanPromisedIsABug) {
  FrameWriter out(kPing, 3);
  out.Put(std::uint8_t{1});
  EXPECT_DEATH(out.Put(std::uint16_t{1}), "broken invariant");
  EXPECT_DEATH(std::move(out).Take(), "broken invariant");
  FrameWriter named(kPing, 10);
  EXPECT_DEATH(named.PutName("a b"), "broken invariant");
  EXPECT_DEATH(named.PutMeasure(-1), "broken invariant");
}

}  // namespace
}  // namespace troupe
