#include "server/cut_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr KeysFrame kLower{
    .type = KvType::kF16, .first_layer = 0, .layers = 2, .first = 16, .positions = 32};

TEST(CutKeys, AreAllStoredOnceEachLayerHasEachTile) {
  CutKeys keys(KvType::kF16, /*layers=*/3, /*positions=*/48);
  const KeysFrame parts[] = {
      kLower, {.layers = 2, .positions = 16}, {.first_layer = 2, .layers = 1, .positions = 48}};
  for (const KeysFrame& part : parts) {
    EXPECT_FALSE(keys.are_all_stored());
    EXPECT_EQ(keys.Look(part).value(), CutKeys::News::kAll);
    keys.Take(part);
    EXPECT_EQ(keys.Look(part).value(), CutKeys::News::kNone) << "twice counts once";
    EXPECT_FALSE(keys.are_all_stored()) << "they have come, and are not stored yet";
    keys.Stored(part);
  }
  EXPECT_TRUE(keys.are_all_stored());
  EXPECT_TRUE(CutKeys().are_all_stored()) << "none are expected";
}

TEST(CutKeys, OthersAreRefusedByNameHoweverLarge) {
  CutKeys keys(KvType::kF16, 3, 48);
  const auto refusal = [&](const KeysFrame& frame) { return keys.Look(frame).status().message(); };
  EXPECT_THAT(refusal({.type = KvType::kQ8_0, .layers = 1, .positions = 16}),
              HasSubstr("keys as q8_0, f16 expected"));
  EXPECT_THAT(refusal({.first_layer = 3, .layers = 1, .positions = 16}), HasSubstr("of 3 layers"));
  EXPECT_THAT(refusal({.first_layer = 0xffffffff, .layers = 2, .positions = 16}),
              HasSubstr("of 3 layers"));
  EXPECT_THAT(refusal({.layers = 1, .first = 48, .positions = 16}), HasSubstr("48 positions"));
  EXPECT_THAT(refusal({.layers = 1, .first = 0xfffffff0, .positions = 32}),
              HasSubstr("48 positions"));
  keys.Take(kLower);
  EXPECT_THAT(refusal({.layers = 2, .positions = 48}), HasSubstr("some have come already"));
  keys.GiveBack(kLower);
  EXPECT_EQ(keys.Look({.layers = 2, .positions = 48}).value(), CutKeys::News::kAll);
}

}  // namespace
}  // namespace troupe
