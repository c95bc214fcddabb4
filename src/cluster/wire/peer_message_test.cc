#include "cluster/wire/peer_message.h"

#include <gtest/gtest.h>

#include <array>

#include "cluster/wire/random_messages_for_test.h"
#include "cluster/wire/wire_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kKinds = std::variant_size_v<PeerMessage>;

// What holds of any bytes. A frame of its own, so that a sanitizer sees a read past its end.
void ExpectMessageOrOneLine(const WireFrame& bytes) {
  const WireFrame frame(bytes);
  const auto message = DecodePeerMessage(frame);
  if (!message.ok()) {
    EXPECT_FALSE(message.status().message().empty());
    EXPECT_EQ(message.status().message().find('\n'), std::string::npos) << HexOfFrame(frame);
    return;
  }
  EXPECT_EQ(ToString(*message).find('\n'), std::string::npos) << HexOfFrame(frame);
  const WireFrame again = EncodePeerMessage(*message);
  EXPECT_LE(again.size(), frame.size());
  const auto read = DecodePeerMessage(again);
  ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << HexOfFrame(frame);
  EXPECT_EQ(*read, *message) << HexOfFrame(frame);
}

// One that is often close to a boundary.
std::byte OddByte(Rng& rng) {
  constexpr std::array<unsigned char, 6> kOdd = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
  return static_cast<std::byte>(rng.Below(2) == 0 ? kOdd[rng.Below(kOdd.size())] : rng.Below(256));
}

WireFrame Damaged(WireFrame frame, Rng& rng) {
  for (std::uint64_t changes = 1 + rng.Below(4); changes > 0; --changes) {
    const auto at = [&] {
      return frame.begin() + static_cast<std::ptrdiff_t>(rng.Below(frame.size()));
    };
    if (frame.empty()) break;
    switch (rng.Below(6)) {
      case 0:
        frame.erase(at());
        break;
      case 1:
        frame.insert(at(), OddByte(rng));
        break;
      case 2:  // a number of several bytes
        for (auto i = at(); i != frame.end() && rng.Below(4) != 0; ++i) *i = std::byte{0xff};
        break;
      default:
        *at() = OddByte(rng);
    }
  }
  return frame;
}

TEST(PeerMessage, OfEachKindIsReadAsItWasWritten) {
  Rng rng(TestSeed());
  RandomMessages messages(rng);
  for (std::size_t i = 0; i < TestCases(3000); ++i) {
    const PeerMessage message = messages.OfKind(i % kKinds);
    ASSERT_EQ(message.index(), i % kKinds);
    const WireFrame frame = EncodePeerMessage(message);
    EXPECT_EQ(KindOfFrame(frame).value(), KindOf(message));
    const auto read = DecodePeerMessage(frame);
    ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << ToString(message);
    EXPECT_EQ(*read, message) << ToString(message);
    EXPECT_EQ(EncodePeerMessage(*read), frame);
  }
}

TEST(PeerMessage, ThatIsCutOffIsRefused) {
  Rng rng(TestSeed());
  RandomMessages messages(rng);
  for (std::size_t i = 0; i < TestCases(200); ++i) {
    const PeerMessage message = messages.OfKind(i % kKinds);
    const WireFrame frame = EncodePeerMessage(message);
    // What they carry ends with the frame: only its reader can see that some is missing.
    const bool is_open = std::holds_alternative<PeerPiece>(message) ||
                         std::holds_alternative<PeerPlanNotice>(message);
    for (std::size_t size = 0; size < frame.size(); ++size) {
      const WireFrame cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      if (!is_open) {
        EXPECT_FALSE(DecodePeerMessage(cut).ok()) << HexOfFrame(cut);
      }
      ExpectMessageOrOneLine(cut);
    }
  }
}

TEST(PeerMessage, ThatIsDamagedIsAMessageOrAnErrorInALine) {
  Rng rng(TestSeed());
  RandomMessages messages(rng);
  std::size_t refused = 0, cases = TestCases(300);
  for (std::size_t i = 0; i < cases; ++i) {
    const WireFrame frame = EncodePeerMessage(messages.OfKind(i % kKinds));
    for (int change = 0; change < 50; ++change) {
      const WireFrame damaged = Damaged(frame, rng);
      if (!DecodePeerMessage(damaged).ok()) ++refused;
      ExpectMessageOrOneLine(damaged);
    }
  }
  EXPECT_GT(refused, 10 * cases) << "some damage must be seen, or the test shows nothing";
}

TEST(PeerMessage, OfRandomBytesIsAMessageOrAnErrorInALine) {
  Rng rng(TestSeed());
  for (std::size_t i = 0; i < TestCases(20000); ++i) {
    WireFrame frame(1 + rng.Below(120));
    for (std::byte& b : frame) b = OddByte(rng);
    frame[0] = static_cast<std::byte>(rng.Below(kKinds + 2));
    ExpectMessageOrOneLine(frame);
  }
}

TEST(PeerMessage, HasANameForEachKind) {
  Rng rng(TestSeed());
  RandomMessages messages(rng);
  for (std::size_t i = 0; i < kKinds; ++i) {
    const PeerMessageKind kind = KindOf(messages.OfKind(i));
    EXPECT_NE(ToString(kind), "unknown");
    EXPECT_EQ(static_cast<std::size_t>(kind), i + 1);
  }
  EXPECT_EQ(kKinds, static_cast<std::size_t>(PeerMessageKind::kAccusation));
}

}  // namespace
}  // namespace troupe
