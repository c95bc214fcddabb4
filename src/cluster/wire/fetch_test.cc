#include "cluster/wire/fetch.h"

#include <gtest/gtest.h>

#include "cluster/wire/wire_for_test.h"

namespace troupe {
namespace {

Status StatusOfPiece(const std::string& total, const std::string& offset, const std::string& data) {
  return DecodePeerPiece(FrameOfHex("0b 0600000000000000 03000000 09000000" + total + offset +
                                    "1032547698badcfe" + data))
      .status();
}

TEST(Piece, LiesWithinItsExpert) {
  const std::string four = "0400000000000000", two = "0200000000000000";
  EXPECT_EQ(StatusOfPiece(four, two, "aabb"), OkStatus());
  EXPECT_EQ(StatusOfPiece(four, two, "aabbcc"),
            DataLoss("piece, byte 41: data: 3 bytes found, 1 to 2 expected"));
  EXPECT_EQ(StatusOfPiece(four, two, ""),
            DataLoss("piece, byte 41: data: 0 bytes found, 1 to 2 expected"));
  EXPECT_EQ(StatusOfPiece(four, four, "aa"),
            DataLoss("piece, byte 25: offset: 4 found, below 4 expected"));
  EXPECT_EQ(StatusOfPiece(four, "ffffffffffffffff", "aa"),
            DataLoss("piece, byte 25: offset: 18446744073709551615 found, below 4 expected"));
}

TEST(Piece, IsNotOfAnExpertThatNoModelHas) {
  const std::string none = "0000000000000000";
  EXPECT_EQ(StatusOfPiece("0100000004000000", none, "aa"),
            DataLoss("piece, byte 17: total: 17179869185 bytes found, 1 to 17179869184 expected"));
  EXPECT_FALSE(StatusOfPiece(none, none, "aa").ok());
  EXPECT_EQ(StatusOfPiece("0000000004000000", none, "aa"), OkStatus());
}

TEST(Piece, IsReadWhereItLies) {
  const std::vector<std::byte> data(100, std::byte{7});
  const PeerPiece piece{.id = 1, .expert = {3, 9}, .total = 200, .offset = 100, .data = data};
  const WireFrame frame = Encode(piece);
  const PeerPiece read = DecodePeerPiece(frame).value();
  EXPECT_EQ(read, piece);
  EXPECT_EQ(read.data.data() + 100, frame.data() + frame.size());
  const std::vector<std::byte> others(100, std::byte{8});
  PeerPiece other = piece;
  other.data = others;
  EXPECT_NE(read, other);
}

TEST(Fetch, IsPrintedInALine) {
  EXPECT_EQ(ToString(PeerFetch{6, {3, 9}, 4096}), "fetch 6: layer 3, expert 9, from byte 4096");
  const std::vector<std::byte> data(3);
  EXPECT_EQ(ToString(PeerPiece{6, {3, 9}, 4099, 4096, 0xfe, data}),
            "piece of fetch 6: layer 3, expert 9, 3 bytes at 4096 of 4099, hash 00000000000000fe");
  EXPECT_EQ(ToString(PeerFetchRefused{6, PeerFetchRefused::Reason::kNotHeld, "moved"}),
            "fetch 6 refused: not held: moved");
}

TEST(FetchRefused, KnowsItsReasons) {
  for (unsigned i = 1; i <= 4; ++i) {
    const PeerFetchRefused refused{6, static_cast<PeerFetchRefused::Reason>(i), "x"};
    EXPECT_NE(ToString(refused.reason), "unknown") << i;
    EXPECT_EQ(DecodePeerFetchRefused(Encode(refused)).value(), refused);
  }
  EXPECT_EQ(DecodePeerFetchRefused(FrameOfHex("0c 00 0600000000000000 0000")).status(),
            DataLoss("fetch refused, byte 1: reason: 0 found, 1 to 4 expected"));
}

TEST(PieceDeathTest, BytesBehindTheEndAreABug) {
  const std::vector<std::byte> data(3);
  EXPECT_DEATH(Encode(PeerPiece{.total = 4, .offset = 2, .data = data}), "broken invariant");
  EXPECT_DEATH(Encode(PeerPiece{.total = 4, .offset = 2}), "broken invariant");
}

}  // namespace
}  // namespace troupe
