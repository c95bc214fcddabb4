#include "split/codec/keys_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace troupe {
namespace {

using testing::HasSubstr;

const KeysFrame kKeys{
    .type = KvType::kQ8_0, .first_layer = 2, .layers = 3, .first = 32, .positions = 48};

std::vector<std::byte> Damaged(std::size_t at, std::uint32_t with) {
  std::vector<std::byte> message = EncodeKeys(kKeys, {});
  std::memcpy(message.data() + at, &with, sizeof with);
  return message;
}

TEST(KeysFrame, ComesBackAsItWasWithItsBytesBehindIt) {
  const std::vector<std::byte> bytes = {std::byte{7}, std::byte{9}};
  const std::vector<std::byte> message = EncodeKeys(kKeys, bytes);
  EXPECT_TRUE(IsKeysMessage(message));
  EXPECT_EQ(ReadKeysFrame(message).value(), kKeys);
  EXPECT_THAT(KeysOf(message), testing::ElementsAreArray(bytes));
}

TEST(KeysFrame, IsRefusedByNameWhereItCannotBeOne) {
  const auto refusal = [](std::size_t at, std::uint32_t with) {
    return ReadKeysFrame(Damaged(at, with)).status().message();
  };
  EXPECT_THAT(refusal(0, 0x54535254), HasSubstr("do not begin with TRKV"));
  EXPECT_THAT(refusal(4, 2), HasSubstr("version 2, 1 expected"));
  EXPECT_THAT(refusal(4, 0x0901), HasSubstr("type 9, 0 to 1 expected"));
  EXPECT_THAT(refusal(12, 0), HasSubstr("0 layers from 2 on"));
  EXPECT_THAT(refusal(8, 0xffffffff), HasSubstr("3 layers from 4294967295 on"));
  EXPECT_THAT(refusal(16, 40), HasSubstr("position 40, a multiple of 16"));
  EXPECT_THAT(refusal(20, 0), HasSubstr("0 positions, a multiple of 16"));
  EXPECT_THAT(refusal(20, 0xfffffff0), HasSubstr("4294967280 positions"));
  const std::vector<std::byte> whole = EncodeKeys(kKeys, {});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ReadKeysFrame(std::span(whole).first(size)).ok());
  }
  EXPECT_FALSE(IsKeysMessage(Damaged(0, 0x54535254)));
}

}  // namespace
}  // namespace troupe
