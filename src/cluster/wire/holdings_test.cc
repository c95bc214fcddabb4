#include "cluster/wire/holdings.h"

#include <gtest/gtest.h>

#include "cluster/wire/wire_for_test.h"

namespace troupe {
namespace {

TEST(ExpertBits, HoldWhatWasAdded) {
  ExpertBits bits({3, 5});
  EXPECT_EQ(bits.size(), 0u);
  bits.Add({2, 4});
  bits.Add({0, 3});
  bits.Add({0, 3});
  EXPECT_EQ(bits.size(), 2u);
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    for (std::uint32_t expert = 0; expert < 5; ++expert) {
      const bool added =
          ExpertId{layer, expert} == ExpertId{2, 4} || ExpertId{layer, expert} == ExpertId{0, 3};
      EXPECT_EQ(bits.Has({layer, expert}), added) << layer << " " << expert;
    }
  }
  EXPECT_FALSE(bits.Has({0, 5})) << "not expert 0 of layer 1";
  EXPECT_FALSE(bits.Has({3, 0}));
}

TEST(ExpertBitsDeathTest, AnExpertThatTheModelLacksIsABug) {
  ExpertBits bits({3, 5});
  EXPECT_DEATH(bits.Add({0, 5}), "broken invariant");
  EXPECT_DEATH(Encode(PeerHoldings{}), "broken invariant") << "no model";
}

TEST(Holdings, SayWhatIsWrongWithThem) {
  const std::string front = "07 0700000000000000 0200000000000000";
  const auto status_of = [&](const char* rest) {
    return DecodePeerHoldings(FrameOfHex(front + rest)).status();
  };
  EXPECT_EQ(status_of("02000000 05000000 ff03"), OkStatus());
  EXPECT_EQ(
      status_of("02000000 05000000 ff07"),
      DataLoss("holdings, byte 25: bits of experts: a bit behind that of the last expert found, "
               "10 bits expected"));
  EXPECT_EQ(status_of("02000000 05000000 ff"),
            DataLoss("holdings, byte 25: bits of experts: 1 bytes found, 2 expected"));
  EXPECT_EQ(status_of("02000000 05000000 ff0300"),
            DataLoss("holdings, byte 27: end: 1 more bytes found, 0 expected"));
  EXPECT_EQ(
      status_of("00100000 00000100"),
      DataLoss("holdings, byte 21: experts of a layer: 4096 layers of 65536 experts found, at "
               "most 1048576 in all layers expected"));
}

TEST(Holdings, ArePrintedInALine) {
  PeerHoldings holdings{.epoch = 7, .sequence = 2, .held = ExpertBits({2, 5})};
  holdings.held.Add({1, 1});
  EXPECT_EQ(ToString(holdings), "holdings 2: 1 experts of 2 layers of 5 experts, plan 7");
}

}  // namespace
}  // namespace troupe
