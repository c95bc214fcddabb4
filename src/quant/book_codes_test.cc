#include "quant/book_codes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/half.h"
#include "base/rng.h"
#include "quant/block_codes.h"
#include "quant/dequantize.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

template <typename Block>
class BookCodesOf : public ::testing::Test {
 protected:
  Block RandomBlock() {
    Block b;
    auto* raw = reinterpret_cast<unsigned char*>(&b);
    for (std::size_t i = 0; i < sizeof b; ++i) raw[i] = static_cast<unsigned char>(rng_.Next());
    return b;
  }
  Rng rng_{TestSeed()};
};
using BlocksWithBooks = ::testing::Types<BlockIQ1_S, BlockIQ1_M, BlockIQ2_XXS, BlockIQ2_XS,
                                         BlockIQ2_S, BlockIQ3_XXS, BlockIQ3_S>;
TYPED_TEST_SUITE(BookCodesOf, BlocksWithBooks);

TYPED_TEST(BookCodesOf, AnyBytesSurviveDecodingAndEncoding) {
  for (int round = 0; round < 100; ++round) {
    const TypeParam b = this->RandomBlock();
    TypeParam again{};
    SetHalf(HalfOf(b), again);
    for (std::size_t run = 0; run < TypeParam::kGroups; ++run) {
      StoreScale(StoredScale(b, run), run, again);
    }
    for (std::size_t g = 0; g < 8; ++g) {
      const WordsAndSigns<TypeParam> decoded = Decode(ReadGroup(b, g));
      for (const std::uint16_t word : decoded.words) ASSERT_LT(word, BookOf<TypeParam>().size());
      const unsigned scale = TypeParam::kGroups == 8 ? StoredScale(b, g) : 0;
      WriteGroup(Encode<TypeParam>(decoded, scale), g, again);
    }
    ASSERT_EQ(std::memcmp(&again, &b, sizeof b), 0);
  }
}

TYPED_TEST(BookCodesOf, EveryCodeIsALevelOfTheTypeAndEveryScaleIsOdd) {
  for (int round = 0; round < 20; ++round) {
    const TypeParam b = this->RandomBlock();
    for (const std::uint8_t code : UnpackCodes(b)) {
      ASSERT_LE(code, TypeParam::kMaxCode);
      ASSERT_NE(TypeParam::kLevels[code], 0) << int{code};
    }
    for (const int scale : UnpackScales(b).scale) {
      ASSERT_EQ(scale % 2, 1);
      ASSERT_GE(scale, TypeParam::kMinScale);
      ASSERT_LE(scale, TypeParam::kMaxScale);
    }
  }
}

TYPED_TEST(BookCodesOf, AnySignsThatCanBeStoredAreRead) {
  for (int round = 0; round < 50; ++round) {
    WordsAndSigns<TypeParam> decoded;
    for (std::size_t g = 0; g < 4; ++g) {
      std::uint32_t eight = static_cast<std::uint32_t>(this->rng_.Below(256));
      if (SignsOf<TypeParam>() == SignForm::kSevens && std::popcount(eight) % 2 != 0) eight ^= 1;
      if (SignsOf<TypeParam>() == SignForm::kShift) eight = eight % 2 * 0xff;
      if (TypeParam::kType == TensorType::kIQ1_S && g > 0) eight = decoded.signs & 0xff;
      decoded.signs |= eight << (8 * g);
    }
    for (std::uint16_t& word : decoded.words) {
      word = static_cast<std::uint16_t>(this->rng_.Below(BookOf<TypeParam>().size()));
    }
    const auto again = Decode(Encode<TypeParam>(decoded, 5));
    ASSERT_EQ(again.signs, decoded.signs);
    ASSERT_EQ(again.words, decoded.words);
  }
}

// The blocks below are filled byte by byte; the expected values follow from the descriptions in
// block_formats.h and the words that code_books_test.cc names.

template <typename Block>
std::vector<float> ValuesOf(const Block& b) {
  std::vector<float> values(Block::kElems);
  DequantizeRow(Block::kType, std::as_bytes(std::span(&b, 1)), values);
  return values;
}

TEST(DequantizeRow, ReadsIQ3_S) {
  BlockIQ3_S b{};
  b.d = FloatToHalf(1);
  b.scales[0] = 0x20;                      // elements 32-63: 5
  b.qs[1] = 0xff;                          // elements 4-7: word 511,
  b.qh[0] = 0x02;                          // by the ninth bit
  b.signs[4] = 0x81;                       // elements 32 and 39
  std::vector<float> expected(256, 1.0f);  // word 0 is four times the first level
  for (int i = 32; i < 64; ++i) expected[i] = 5;
  expected[4] = 1, expected[5] = 1, expected[6] = 15, expected[7] = 15;
  expected[32] = expected[39] = -5;
  EXPECT_EQ(ValuesOf(b), expected);
}

TEST(DequantizeRow, ReadsIQ3_XXS) {
  BlockIQ3_XXS b{};
  b.d = FloatToHalf(4);
  b.qs[63] = 1;                            // elements 252-255: word 1, whose first digit is 2
  b.signs[0] = 0x03;                       // elements 0 and 1: an even number of signs
  b.signs[4] = 0x04;                       // element 34, and with it element 39
  b.signs[31] = 0x10;                      // elements 224-255: scale 3
  std::vector<float> expected(256, 4.0f);  // 4 / 2 * 2
  expected[0] = expected[1] = expected[34] = expected[39] = -4;
  for (int i = 224; i < 256; ++i) expected[i] = 12;
  expected[252] = 4.0f / 2 * 3 * 10;
  EXPECT_EQ(ValuesOf(b), expected);
}

TEST(DequantizeRow, ReadsIQ2_XXS) {
  BlockIQ2_XXS b{};
  b.d = FloatToHalf(1);
  b.qs[1] = 1;                             // elements 8-15: word 1, whose first digit is 2
  b.qs[4] = 0x01;                          // element 0, and with it element 7
  b.qs[15] = 0xf0;                         // elements 32-63: scale 31
  std::vector<float> expected(256, 1.0f);  // 1 / 8 * 8
  expected[8] = 43.0f / 8;
  expected[0] = expected[7] = -1;
  for (int i = 32; i < 64; ++i) expected[i] = 31;
  EXPECT_EQ(ValuesOf(b), expected);
}

TEST(DequantizeRow, ReadsIQ2_XS) {
  BlockIQ2_XS b{};
  b.d = FloatToHalf(1);
  b.qs[0] = 0xff, b.qs[1] = 0x03;  // word 511, element 0 negative, and with it element 7
  b.scales[7] = 0x10;              // elements 240-255: scale 3
  std::vector<float> expected(256, 1.0f);
  const std::uint16_t word = kWordsIq2Xs[511];
  for (int i = 0; i < 8; ++i) {
    expected[i] = static_cast<float>(kThreeMagnitudes[word >> (2 * i) & 3]) / 8;
  }
  expected[0] = -expected[0], expected[7] = -expected[7];
  for (int i = 240; i < 256; ++i) expected[i] = 3;
  EXPECT_EQ(ValuesOf(b), expected);
}

TEST(DequantizeRow, ReadsIQ2_S) {
  BlockIQ2_S b{};
  b.d = FloatToHalf(8);
  b.qs[3] = 0xff;      // elements 24-31: word 1023,
  b.qh[0] = 0xc0;      // by the upper bits
  b.signs[31] = 0x80;  // element 255
  b.scales[0] = 0x01;  // elements 0-15: scale 3
  std::vector<float> expected(256, 8.0f);
  for (int i = 0; i < 16; ++i) expected[i] = 24;
  for (int i = 0; i < 8; ++i) {
    expected[24 + i] = static_cast<float>(kThreeMagnitudes[kWordsIq2S[1023] >> (2 * i) & 3]);
  }
  expected[255] = -8;
  EXPECT_EQ(ValuesOf(b), expected);
}

TEST(DequantizeRow, ReadsIQ1_S) {
  BlockIQ1_S b{};
  b.d = FloatToHalf(8);
  b.qs[3] = 0xff;                           // elements 24-31: word 2047,
  b.qh[1] = 0x0e;                           // by the upper bits
  b.qh[3] = 0xf0;                           // elements 32-63: scale 15, an eighth less
  std::vector<float> expected(256, -7.0f);  // word 0 is eight times -1
  for (int i = 24; i < 32; ++i) expected[i] = 9;
  for (int i = 32; i < 64; ++i) expected[i] = -9 * 15;
  EXPECT_EQ(ValuesOf(b), expected);
}

TEST(DequantizeRow, ReadsIQ1_M) {
  BlockIQ1_M b{};
  SetHalf(FloatToHalf(8), b);
  EXPECT_EQ(b.scales[7], 0x40);  // 8 is 0x4800
  EXPECT_EQ(b.scales[5], 0x80);
  b.qs[1] = 0xff;      // elements 8-15: word 2047,
  b.qh[0] = 0x70;      // by the upper bits
  b.qh[15] = 0x80;     // elements 248-255: an eighth less
  b.scales[0] = 0x08;  // elements 16-31: scale 3
  std::vector<float> expected(256, -7.0f);
  for (int i = 8; i < 16; ++i) expected[i] = 9;
  for (int i = 16; i < 32; ++i) expected[i] = -21;
  for (int i = 248; i < 256; ++i) expected[i] = -9;
  EXPECT_EQ(ValuesOf(b), expected);
}

}  // namespace
}  // namespace troupe
