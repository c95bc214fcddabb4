#include "cluster/wire/answer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cluster/wire/wire_for_test.h"

namespace troupe {
namespace {

Status StatusOfAnswer(const std::string& hex) { return DecodePeerAnswer(FrameOfHex(hex)).status(); }

constexpr const char* kTimes = "0500000000000000 10000000 00010000 03000000";

TEST(Answer, IsComputedWhereItIsSentFrom) {
  PeerAnswer answer{.call = 3, .experts = {{2, 1}, {8, 2}}, .rows = {.width = 3, .count = 3}};
  RowFrame frame = MakeFrame(answer);
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < 3; ++i) frame.Floats(row)[i] = static_cast<float>(row * 3 + i);
  }
  frame.Floats(2)[2] = std::nanf("");
  const WireFrame sent = std::move(frame).Take();
  const PeerAnswer read = DecodePeerAnswer(sent).value();
  EXPECT_EQ(read.rows.Floats(1)[2], 5.0f);
  EXPECT_TRUE(std::isnan(read.rows.Floats(2)[2]));
  EXPECT_EQ(read.rows.bytes.data() + read.rows.bytes.size(), sent.data() + sent.size());
  answer.rows.bytes = read.rows.bytes;
  EXPECT_EQ(read, answer) << "a NaN equals itself";
  EXPECT_EQ(Encode(answer), sent);
}

TEST(Answer, MayEndACallWithoutRows) {
  const PeerAnswer answer{.call = 3, .last = true, .rows = {.width = 3}};
  EXPECT_EQ(DecodePeerAnswer(Encode(answer)).value(), answer);
  EXPECT_EQ(ToString(answer),
            "answer 3, last: experts none; waited 0 us, computed 0 us, 0 waiting");
}

TEST(Answer, SaysWhatIsWrongWithIt) {
  const std::string times = kTimes, rows = "0000803f 000000c0";
  EXPECT_EQ(StatusOfAnswer("04 00 0100 00 000000 02000000" + times + "0900 0100" + rows),
            OkStatus());
  EXPECT_EQ(StatusOfAnswer("04 02 0100 00 000000 02000000" + times + "0900 0100" + rows),
            DataLoss("answer, byte 1: last: 2 found, 0 or 1 expected"));
  EXPECT_EQ(
      StatusOfAnswer("04 00 0000 00 000000 02000000" + times),
      DataLoss("answer, byte 2: number of experts: 0 found in a message that is not the last, 1 "
               "expected"));
  EXPECT_EQ(StatusOfAnswer("04 00 0100 00 000000 01001000" + times + "0900 0100" + rows),
            DataLoss("answer, byte 8: width: 1048577 found, 1 to 1048576 expected"));
  EXPECT_EQ(StatusOfAnswer("04 00 0100 00 000000 02000000" + times + "0900 0200" + rows),
            DataLoss("answer, byte 36: rows: 8 bytes found, 2 rows of 8 bytes expected"));
  EXPECT_EQ(
      StatusOfAnswer("04 00 0200 00 000000 02000000" + times + "0900 0100 0900 0100" + rows + rows),
      DataLoss("answer, byte 32: experts: expert 9 found twice, once expected"));
  EXPECT_EQ(StatusOfAnswer("04 00 0200 00 000000 02000000" + times + "0900 0000 0800 0100" + rows),
            DataLoss("answer, byte 32: experts: expert 9 without a row found, 1 expected"));
  EXPECT_EQ(StatusOfAnswer("04 00 0100 03 000000 02000000" + times + "0900 0100" + rows),
            DataLoss("answer, byte 4: form of rows: 3 found, 0 to 2 expected"));
  EXPECT_EQ(StatusOfAnswer("04 00 0100 00 000100 02000000" + times + "0900 0100" + rows),
            DataLoss("answer, byte 5: padding: 0x01 found, 0 expected"));
  EXPECT_EQ(StatusOfAnswer("04 00 0100 01 000000 02000000" + times + "0900 0100" + rows),
            DataLoss("answer, byte 8: width: 2 found, 32 to 1048576 in steps of 32 expected"));
  EXPECT_EQ(StatusOfAnswer("04 00 0100 02 000000 02000000" + times + "0900 0100" + rows),
            DataLoss("answer, byte 36: rows: 8 bytes found, 1 rows of 4 bytes expected"));
}

TEST(Answer, IsPrintedInALine) {
  EXPECT_EQ(ToString(PeerAnswer{.call = 5,
                                .waited_micros = 16,
                                .computed_micros = 256,
                                .waiting = 3,
                                .experts = {{9, 2}, {4, 1}}}),
            "answer 5: experts 9 (2 rows), 4 (1 rows); waited 16 us, computed 256 us, 3 waiting");
}

TEST(AnswerDeathTest, RowsThatNoExpertHasAreABug) {
  const PeerAnswer answer{.experts = {{2, 1}}, .rows = {.width = 3, .count = 2}};
  EXPECT_DEATH(MakeFrame(answer), "broken invariant");
  EXPECT_DEATH(MakeFrame(PeerAnswer{.rows = {.width = 3}}), "broken invariant");
}

}  // namespace
}  // namespace troupe
