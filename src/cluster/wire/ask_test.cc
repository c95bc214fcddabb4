#include "cluster/wire/ask.h"

#include <gtest/gtest.h>

#include <array>

#include "cluster/wire/wire_for_test.h"

namespace troupe {
namespace {

// One row of two floats for expert 9, and a second one for 9 and 4.
constexpr std::string_view kFront = "03 00 0300 00000000 0500000000000000";
constexpr std::string_view kWidth = "02000000", kCounts = "0200 0200 00 000000";
constexpr std::string_view kTable = "0900 0200 0400 0100", kIndices = "0000 0100 0100 0000";
constexpr std::string_view kRows = "0000803f 00000040 00004040 00008040";

Status StatusOf(std::string_view width, std::string_view counts, std::string_view table,
                std::string_view indices, std::string_view rows) {
  std::string hex(kFront);
  for (const std::string_view part : {width, counts, table, indices, rows}) hex += part;
  return DecodePeerAsk(FrameOfHex(hex)).status();
}

TEST(Ask, IsReadWhereItLies) {
  std::string hex(kFront);
  for (const auto part : {kWidth, kCounts, kTable, kIndices, kRows}) hex += part;
  const WireFrame frame = FrameOfHex(hex);
  const PeerAsk ask = DecodePeerAsk(frame).value();
  ASSERT_EQ(ask.experts.size(), 2u);
  EXPECT_EQ(ask.experts[0].expert, 9);
  EXPECT_EQ(ask.rows.count, 2u);
  EXPECT_EQ(ask.rows.Floats(1)[0], 3.0f);
  EXPECT_EQ(ask.rows.bytes.data() + ask.rows.bytes.size(), frame.data() + frame.size());
  EXPECT_EQ(static_cast<const void*>(ask.experts[1].rows.data()), frame.data() + 40);
}

TEST(Ask, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(StatusOf(kWidth, kCounts, kTable, kIndices, kRows), OkStatus());
  EXPECT_EQ(StatusOf("00000000", kCounts, kTable, kIndices, kRows),
            DataLoss("ask, byte 16: width: 0 found, 1 to 1048576 expected"));
  EXPECT_EQ(StatusOf(kWidth, "0000 0200 00 000000", kTable, kIndices, kRows),
            DataLoss("ask, byte 20: number of rows: 0 found, 1 to 65535 expected"));
  EXPECT_EQ(StatusOf(kWidth, "0200 0000 00 000000", kTable, kIndices, kRows),
            DataLoss("ask, byte 22: number of experts: 0 found, 1 to 65535 expected"));
  EXPECT_EQ(StatusOf(kWidth, "0200 ffff 00 000000", kTable, kIndices, kRows),
            DataLoss("ask, byte 28: experts: 32 bytes found, 262140 expected"));
  EXPECT_EQ(StatusOf(kWidth, kCounts, "0900 0200 0900 0100", kIndices, kRows),
            DataLoss("ask, byte 28: experts: expert 9 found twice, once expected"));
  EXPECT_EQ(StatusOf(kWidth, kCounts, "0900 0300 0400 0000", kIndices, kRows),
            DataLoss("ask, byte 28: experts: expert 4 without a row found, 1 expected"));
  EXPECT_EQ(StatusOf(kWidth, kCounts, "0900 0200 0400 ffff", kIndices, kRows),
            DataLoss("ask, byte 40: rows of an expert: 20 bytes found, 131070 expected"));
  EXPECT_EQ(StatusOf(kWidth, kCounts, kTable, "0000 0200 0100 0000", kRows),
            DataLoss("ask, byte 36: rows of an expert: row 2 found, below 2 expected"));
  EXPECT_EQ(StatusOf(kWidth, kCounts, kTable, "0100 0100 0100 0000", kRows),
            DataLoss("ask, byte 36: rows of an expert: row 1 found, above 1 expected"));
  EXPECT_EQ(StatusOf(kWidth, kCounts, kTable, "0000 0100 0100 0100", kRows),
            DataLoss("ask, byte 42: padding: 0x01 found, 0 expected"));
  EXPECT_EQ(StatusOf(kWidth, kCounts, kTable, kIndices, "0000803f"),
            DataLoss("ask, byte 44: rows: 4 bytes found, 2 rows of 8 bytes expected"));
  EXPECT_FALSE(StatusOf(kWidth, kCounts, kTable, kIndices, std::string(kRows) + "00").ok());
  EXPECT_EQ(StatusOf(kWidth, "0200 0200 02 000000", kTable, kIndices, kRows), OkStatus());
  EXPECT_EQ(StatusOf(kWidth, "0200 0200 03 000000", kTable, kIndices, kRows),
            DataLoss("ask, byte 24: form of the answer: 3 found, 0 to 2 expected"));
  EXPECT_EQ(StatusOf(kWidth, "0200 0200 01 000000", kTable, kIndices, kRows),
            DataLoss("ask, byte 24: form of the answer: 8-bit codes found, which rows of 2 cannot "
                     "have"));
}

TEST(Ask, In8BitsHasWholeGroups) {
  const auto status_of_width = [](const char* width) {
    return DecodePeerAsk(FrameOfHex(std::string("03 01 0300 00000000 0500000000000000") + width))
        .status();
  };
  EXPECT_EQ(status_of_width("21000000"),
            DataLoss("ask, byte 16: width: 33 found, 32 to 1048576 in steps of 32 expected"));
  EXPECT_EQ(status_of_width("20000000"),
            DataLoss("ask, byte 20: number of rows: 0 bytes found, 2 expected"));
}

TEST(Ask, IsWrittenRowByRowWhereTheRowsAreToLie) {
  const std::array<std::uint16_t, 2> both = {0, 1};
  PeerAsk ask{
      .call = 1, .experts = {{7, both}}, .rows = {.form = RowForm::kInt8, .width = 64, .count = 2}};
  std::vector<ActivationGroup> groups(4);
  for (std::size_t i = 0; i < 4; ++i) {
    groups[i].scale = static_cast<float>(i + 1);
    std::ranges::fill(groups[i].codes, static_cast<std::int8_t>(i));
  }
  RowFrame frame = MakeFrame(ask);
  PackRow(std::span(groups).first(2), frame.Row(0));
  PackRow(std::span(groups).last(2), frame.Row(1));
  const WireFrame sent = std::move(frame).Take();
  const PeerAsk read = DecodePeerAsk(sent).value();
  std::vector<ActivationGroup> row(2);
  UnpackRow(read.rows.Row(1), row);
  EXPECT_EQ(row[0].scale, 3.0f);
  EXPECT_EQ(row[1].sum, 3 * 32);
  ask.rows.bytes = read.rows.bytes;
  EXPECT_EQ(read, ask);
  EXPECT_EQ(Encode(ask), sent);
}

TEST(Ask, IsPrintedInALine) {
  const std::array<std::uint16_t, 2> both = {0, 1};
  const PeerAsk ask{.call = 17,
                    .layer = 3,
                    .deadline_micros = 2000,
                    .experts = {{9, both}, {4, std::span(both).first(1)}},
                    .answer = RowForm::kBf16,
                    .rows = {.form = RowForm::kInt8, .width = 2048, .count = 2}};
  EXPECT_EQ(ToString(ask),
            "ask 17: layer 3, experts 9 (2 rows), 4 (1 rows); 2 rows of 2048 8-bit codes, "
            "answer in bf16, deadline 2000 us");
}

TEST(AskRefused, KnowsItsReasons) {
  for (unsigned i = 1; i <= 4; ++i) {
    const PeerAskRefused refused{5, static_cast<PeerAskRefused::Reason>(i), ""};
    EXPECT_NE(ToString(refused.reason), "unknown") << i;
    EXPECT_EQ(DecodePeerAskRefused(Encode(refused)).value(), refused);
  }
  WireFrame frame = Encode(PeerAskRefused{5, PeerAskRefused::Reason::kStopping, ""});
  frame[1] = std::byte{5};
  EXPECT_EQ(DecodePeerAskRefused(frame).status(),
            DataLoss("ask refused, byte 1: reason: 5 found, 1 to 4 expected"));
  EXPECT_EQ(ToString(PeerAskRefused{5, PeerAskRefused::Reason::kStopping, "it ends"}),
            "ask 5 refused: stopping: it ends");
  EXPECT_EQ(ToString(PeerCancel{5}), "cancel 5");
}

TEST(AskDeathTest, ARowThatIsNotThereIsABug) {
  const std::array<std::uint16_t, 2> rows = {0, 1};
  PeerAsk ask{.experts = {{7, rows}}, .rows = {.width = 1, .count = 1}};
  EXPECT_DEATH(MakeFrame(ask), "broken invariant");
  ask.rows.width = 0;
  ask.rows.count = 2;
  EXPECT_DEATH(MakeFrame(ask), "broken invariant");
  ask.rows.width = 1;
  EXPECT_DEATH(Encode(ask), "broken invariant") << "the rows' bytes are missing";
}

}  // namespace
}  // namespace troupe
