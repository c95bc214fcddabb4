#include "quant/block_codes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// The bits of a block that differ from those of a block of zero bytes.
template <typename Block>
std::vector<std::size_t> BitsSet(const Block& b) {
  std::array<std::uint8_t, sizeof(Block)> raw;
  std::memcpy(raw.data(), &b, sizeof b);
  std::vector<std::size_t> bits;
  for (std::size_t i = 0; i < 8 * raw.size(); ++i) {
    if ((raw[i / 8] >> (i % 8)) & 1) bits.push_back(i);
  }
  return bits;
}

// Where GGUF keeps bit `bit` of code i, as a bit of the whole block; written from the descriptions
// of the formats, not from the planes.
std::size_t BitOfCode(TensorType type, std::size_t i, std::size_t bit) {
  const auto at = [](std::size_t byte, std::size_t bit_in_byte) { return 8 * byte + bit_in_byte; };
  switch (type) {
    case TensorType::kMXFP4:
      return at(1 + i % 16, 4 * (i / 16) + bit);
    case TensorType::kNVFP4:  // each 16 elements: 8 bytes, the first 8 elements in low nibbles
      return at(4 + 8 * (i / 16) + i % 8, 4 * (i % 16 / 8) + bit);
    case TensorType::kIQ4_XS:  // each 32 elements: 16 bytes
      return at(8 + 16 * (i / 32) + i % 16, 4 * (i % 32 / 16) + bit);
    case TensorType::kIQ4_NL:
    case TensorType::kQ4_0:
      return at(2 + i % 16, 4 * (i / 16) + bit);
    case TensorType::kQ4_1:
      return at(4 + i % 16, 4 * (i / 16) + bit);
    case TensorType::kQ5_0:  // after d: a 32-bit word of fifth bits, then nibbles
      return bit == 4 ? at(2, i) : at(6 + i % 16, 4 * (i / 16) + bit);
    case TensorType::kQ5_1:
      return bit == 4 ? at(4, i) : at(8 + i % 16, 4 * (i / 16) + bit);
    case TensorType::kQ2_K:  // each half of the block: 32 bytes, 4 runs of 32 elements
      return at(16 + 32 * (i / 128) + i % 32, 2 * (i % 128 / 32) + bit);
    case TensorType::kQ3_K:  // high bits first: byte i % 32, a bit for each run of 32
      return bit == 2 ? at(i % 32, i / 32)
                      : at(32 + 32 * (i / 128) + i % 32, 2 * (i % 128 / 32) + bit);
    case TensorType::kQ4_K:  // each 64 elements: 32 bytes, the first 32 elements in low nibbles
      return at(16 + 32 * (i / 64) + i % 32, 4 * (i % 64 / 32) + bit);
    case TensorType::kQ5_K:
      return bit == 4 ? at(16 + i % 32, i / 32)
                      : at(48 + 32 * (i / 64) + i % 32, 4 * (i % 64 / 32) + bit);
    case TensorType::kQ6_K:  // each 128 elements: 64 bytes of nibbles, 32 bytes of upper pairs
      return bit < 4 ? at(64 * (i / 128) + i % 64, 4 * (i % 128 / 64) + bit)
                     : at(128 + 32 * (i / 128) + i % 32, 2 * (i % 128 / 32) + bit - 4);
    default:
      ADD_FAILURE() << "no planes";
      return 0;
  }
}

// Where GGUF keeps bit `bit` of the stored scale (or min) of group g.
std::size_t BitOfScale(TensorType type, bool is_min, std::size_t g, std::size_t bit) {
  const auto at = [](std::size_t byte, std::size_t bit_in_byte) { return 8 * byte + bit_in_byte; };
  switch (type) {
    case TensorType::kQ2_K:
      return at(g, (is_min ? 4 : 0) + bit);
    case TensorType::kQ3_K:
      return bit < 4 ? at(96 + g % 8, 4 * (g / 8) + bit) : at(104 + g % 4, 2 * (g / 4) + bit - 4);
    case TensorType::kQ6_K:
      return at(192 + g, bit);
    case TensorType::kIQ4_XS:
      return bit < 4 ? at(4 + g / 2, 4 * (g % 2) + bit) : at(2 + g / 4, 2 * (g % 4) + bit - 4);
    default: {  // Q4_K, Q5_K
      const std::size_t low_half = 4 + (is_min ? 4 : 0) + g % 4;
      if (g < 4) return at(low_half, bit);
      return bit < 4 ? at(4 + 8 + g % 4, (is_min ? 4 : 0) + bit) : at(low_half, 6 + bit - 4);
    }
  }
}

template <typename Block>
class CodesOf : public ::testing::Test {};
using BlocksWithPlanes =
    ::testing::Types<BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ2_K, BlockQ3_K, BlockQ4_K,
                     BlockQ5_K, BlockQ6_K, BlockMXFP4, BlockNVFP4, BlockIQ4_NL, BlockIQ4_XS>;
TYPED_TEST_SUITE(CodesOf, BlocksWithPlanes);

TYPED_TEST(CodesOf, EveryBitLiesWhereTheFormatSays) {
  for (std::size_t i = 0; i < TypeParam::kElems; ++i) {
    for (std::size_t bit = 0; (1 << bit) <= TypeParam::kMaxCode; ++bit) {
      Codes<TypeParam> codes{};
      codes[i] = static_cast<std::uint8_t>(1 << bit);
      TypeParam b{};
      PackCodes(codes, b);
      ASSERT_EQ(BitsSet(b), std::vector{BitOfCode(TypeParam::kType, i, bit)})
          << i << ", bit " << bit;
      ASSERT_EQ(UnpackCodes(b), codes) << i << ", bit " << bit;
    }
  }
}

TEST(CodesOfQ8_0, AreTheStoredBytesPlus128) {
  BlockQ8_0 b{};
  for (int i = 0; i < 32; ++i) b.qs[i] = static_cast<std::int8_t>(i < 16 ? i - 128 : i + 96);
  const Codes<BlockQ8_0> codes = UnpackCodes(b);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(codes[i], i < 16 ? i : i + 224);
  BlockQ8_0 again{};
  PackCodes(codes, again);
  EXPECT_EQ(std::memcmp(&again, &b, sizeof b), 0);
}

template <typename Block>
class ScalesOf : public ::testing::Test {};
using SuperBlocks =
    ::testing::Types<BlockQ2_K, BlockQ3_K, BlockQ4_K, BlockQ5_K, BlockQ6_K, BlockIQ4_XS>;
TYPED_TEST_SUITE(ScalesOf, SuperBlocks);

// Q3_K and IQ4_XS store scale + 32; the scales of the others are what their bits say.
template <typename Block>
constexpr int kStoredZero =
    Block::kType == TensorType::kQ3_K || Block::kType == TensorType::kIQ4_XS ? 32 : 0;

TYPED_TEST(ScalesOf, EveryBitLiesWhereTheFormatSays) {
  constexpr int kRange = TypeParam::kMaxScale - TypeParam::kMinScale;
  for (std::size_t g = 0; g < TypeParam::kGroups; ++g) {
    for (std::size_t bit = 0; (1 << bit) <= kRange; ++bit) {
      for (const bool is_min : {false, true}) {
        if (is_min && !TypeParam::kHasMin) continue;
        GroupScales<TypeParam> groups;
        groups.scale.fill(static_cast<std::int8_t>(-kStoredZero<TypeParam>));
        if (is_min) {
          groups.min[g] = static_cast<std::uint8_t>(1 << bit);
        } else {
          groups.scale[g] = static_cast<std::int8_t>((1 << bit) - kStoredZero<TypeParam>);
        }
        TypeParam b{};
        PackScales(groups, b);
        ASSERT_EQ(BitsSet(b), std::vector{BitOfScale(TypeParam::kType, is_min, g, bit)})
            << (is_min ? "min " : "scale ") << g << ", bit " << bit;
        const GroupScales<TypeParam> unpacked = UnpackScales(b);
        ASSERT_EQ(unpacked.scale, groups.scale);
        ASSERT_EQ(unpacked.min, groups.min);
      }
    }
  }
}

TYPED_TEST(ScalesOf, AnyBytesSurviveUnpackingAndPacking) {
  Rng rng(TestSeed());
  for (int round = 0; round < 100; ++round) {
    std::array<std::uint8_t, sizeof(TypeParam)> raw;
    for (std::uint8_t& byte : raw) byte = static_cast<std::uint8_t>(rng.Next());
    const auto b = std::bit_cast<TypeParam>(raw);
    TypeParam again{};
    again.d = b.d;
    if constexpr (TypeParam::kHasMin) again.dmin = b.dmin;
    PackCodes(UnpackCodes(b), again);
    PackScales(UnpackScales(b), again);
    ASSERT_EQ(std::memcmp(&again, &b, sizeof b), 0);
  }
}

TEST(BlockFormats, HaveTheSizesThatTheTypeTableSays) {
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    const bool is_blocks = WithBlockType(info.type, [&]<typename Block>() {
      EXPECT_EQ(sizeof(Block), info.block_bytes) << info.name;
      EXPECT_EQ(Block::kElems, info.block_elems) << info.name;
      EXPECT_EQ(Block::kType, info.type) << info.name;
    });
    EXPECT_EQ(is_blocks, info.block_elems > 1) << info.name;
  }
}

}  // namespace
}  // namespace troupe
