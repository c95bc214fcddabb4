#include "quant/dequantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/half.h"
#include "quant/block_codes.h"
#include "quant/reference.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::vector<float> Dequantize(TensorType type, const T& stored, std::size_t elems) {
  std::vector<float> values(elems);
  DequantizeRow(type, std::as_bytes(std::span(&stored, 1)), values);
  return values;
}

template <typename Block>
std::vector<float> Dequantize(const Block& b) {
  return Dequantize(Block::kType, b, Block::kElems);
}

TEST(DequantizeRow, ReadsPlainNumbers) {
  const float f32[] = {1.5f, -0.0f, 1e-40f};
  EXPECT_THAT(Dequantize(TensorType::kF32, f32, 3), ElementsAre(1.5f, -0.0f, 1e-40f));
  const std::uint16_t f16[] = {0x3c00, 0xc000, 0x0001, 0x7bff};
  EXPECT_THAT(Dequantize(TensorType::kF16, f16, 4), ElementsAre(1.0f, -2.0f, 0x1p-24f, 65504.0f));
  const std::uint16_t bf16[] = {0x3f80, 0xc000, 0x0001, 0x7f7f};
  EXPECT_THAT(Dequantize(TensorType::kBF16, bf16, 4),
              ElementsAre(1.0f, -2.0f, 0x1p-133f, 0x1.fep127f));
}

// The blocks below are filled byte by byte; the expected values follow from the formulas beside the
// structs in block_formats.h.

TEST(DequantizeRow, ReadsQ4_0) {
  BlockQ4_0 b{};
  b.d = FloatToHalf(0.5f);
  std::memset(b.qs, 0x88, sizeof b.qs);
  b.qs[0] = 0xf0;   // element 0: 0 - 8, element 16: 15 - 8
  b.qs[15] = 0x79;  // element 15: 9 - 8, element 31: 7 - 8
  std::vector<float> expected(32, 0.0f);
  expected[0] = -4;
  expected[16] = 3.5f;
  expected[15] = 0.5f;
  expected[31] = -0.5f;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ4_1) {
  BlockQ4_1 b{};
  b.d = FloatToHalf(0.25f);
  b.m = FloatToHalf(-1);
  b.qs[3] = 0xf4;
  std::vector<float> expected(32, -1.0f);
  expected[3] = 0;
  expected[19] = 2.75f;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ5_0) {
  BlockQ5_0 b{};
  b.d = FloatToHalf(2);
  std::memset(b.qh, 0xff, 3);
  b.qh[3] = 0x7f;
  b.qs[1] = 0x0f;                         // element 1: 31 - 16
  std::vector<float> expected(32, 0.0f);  // elsewhere 16 - 16
  expected[1] = 30;
  expected[31] = -32;  // the one without its fifth bit
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ5_1) {
  BlockQ5_1 b{};
  b.d = FloatToHalf(1);
  b.m = FloatToHalf(0.5f);
  b.qh[2] = 0x02;
  b.qs[1] = 0x30;  // element 17: 16 + 3
  std::vector<float> expected(32, 0.5f);
  expected[17] = 19.5f;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ8_0) {
  BlockQ8_0 b{};
  b.d = FloatToHalf(0.125f);
  b.qs[0] = -128;
  b.qs[31] = 127;
  std::vector<float> expected(32, 0.0f);
  expected[0] = -16;
  expected[31] = 15.875f;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsMXFP4) {
  BlockMXFP4 b{};
  b.d = 128;        // 2
  b.qs[0] = 0x71;   // element 0: 0.5, element 16: 6
  b.qs[3] = 0x8f;   // element 3: -6, element 19: the other zero
  b.qs[15] = 0xa5;  // element 15: 3, element 31: -1
  std::vector<float> expected(32, 0.0f);
  expected[0] = 1;
  expected[16] = 12;
  expected[3] = -12;
  expected[15] = 6;
  expected[31] = -2;
  EXPECT_EQ(Dequantize(b), expected);
  const auto first_at = [&](std::uint8_t exponent) {
    b.d = exponent;
    return Dequantize(b)[0];
  };
  EXPECT_EQ(first_at(0), 0x1p-128f);  // half of the least exponent, 2^-127, is subnormal
  EXPECT_EQ(first_at(1), 0x1p-127f);
  EXPECT_EQ(first_at(2), 0x1p-126f);
  EXPECT_EQ(first_at(255), 0x1p127f);
}

TEST(DequantizeRow, ReadsNVFP4) {
  BlockNVFP4 b{};
  b.scales[0] = 0x38;  // 1
  b.scales[1] = 0x3c;  // 1.5
  b.scales[2] = 0x01;  // 2^-9
  b.scales[3] = 0x7f;  // what would be a NaN is 0
  b.qs[0] = 0x71;      // element 0: 0.5, element 8: 6
  b.qs[7] = 0x8f;      // element 7: -6, element 15: the other zero
  b.qs[8] = 0xa5;      // element 16: 3, element 24: -1
  b.qs[23] = 0x72;     // element 39: 1, element 47: 6
  b.qs[31] = 0x77;
  std::vector<float> expected(64, 0.0f);
  expected[0] = 0.5f;
  expected[8] = 6;
  expected[7] = -6;
  expected[16] = 4.5f;
  expected[24] = -1.5f;
  expected[39] = 0x1p-9f;
  expected[47] = 0x6p-9f;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsIQ4_NL) {
  BlockIQ4_NL b{};
  b.d = FloatToHalf(0.5f);
  std::memset(b.qs, 0x88, sizeof b.qs);  // 1 everywhere
  b.qs[0] = 0xf0;                        // element 0: -127, element 16: 113
  b.qs[15] = 0x79;                       // element 15: 13, element 31: -10
  std::vector<float> expected(32, 0.5f);
  expected[0] = -63.5f;
  expected[16] = 56.5f;
  expected[15] = 6.5f;
  expected[31] = -5;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsIQ4_XS) {
  BlockIQ4_XS b{};
  b.d = FloatToHalf(1);
  std::memset(b.qs, 0x88, sizeof b.qs);
  b.scales[0] = 0x02;  // elements 0-31: 32 + ...
  b.scales[2] = 0x03;  // ... 3 - 32
  b.scales[1] = 0xc0;  // elements 224-255: 48 + ...
  b.scales[5] = 0xf0;  // ... 15 - 32
  b.qs[1] = 0xf9;      // element 1: 13, element 17: 113
  b.qs[127] = 0x08;    // element 239: 1, element 255: -127
  std::vector<float> expected(256, -32.0f);
  for (int i = 0; i < 32; ++i) expected[i] = 3;
  for (int i = 224; i < 256; ++i) expected[i] = 31;
  expected[1] = 39;
  expected[17] = 339;
  expected[255] = -127 * 31;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ2_K) {
  BlockQ2_K b{};
  b.d = FloatToHalf(1);
  b.dmin = FloatToHalf(0.5f);
  b.scales[0] = 0x03;   // elements 0-15: 3 * q
  b.scales[3] = 0x2f;   // elements 48-63: 15 * q - 1
  b.scales[15] = 0x40;  // elements 240-255: -2
  b.qs[5] = 0x02;       // element 5: 2
  b.qs[16] = 0x0c;      // element 16 + 32: 3
  std::vector<float> expected(256, 0.0f);
  expected[5] = 6;
  for (int i = 48; i < 64; ++i) expected[i] = -1;
  expected[48] = 44;
  for (int i = 240; i < 256; ++i) expected[i] = -2;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ3_K) {
  BlockQ3_K b{};
  b.d = FloatToHalf(0.5f);
  std::memset(b.hmask, 0xff, sizeof b.hmask);  // codes 4: 0
  std::memset(b.scales + 8, 0xaa, 4);          // scales 32: 0
  b.scales[0] = 0x21;                          // group 0: 33 - 32, group 8: 34 - 32
  b.qs[0] = 0x03;                              // element 0: code 7
  b.qs[32 + 2] = 0x01;                         // element 130: code 5
  b.hmask[1] = 0xfe;                           // element 1: code 0
  std::vector<float> expected(256, 0.0f);
  expected[0] = 1.5f;
  expected[1] = -2;
  expected[130] = 1;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ4_K) {
  BlockQ4_K b{};
  b.d = FloatToHalf(0.5f);
  b.dmin = FloatToHalf(1);
  b.scales[1] = 0x82;       // group 1: scale 2; group 5: upper bits of the scale 2 (32)
  b.scales[5] = 0x03;       // group 1: min 3
  b.scales[9] = 0x51;       // group 5: lower bits of scale 1, of min 5
  b.qs[0] = 0xf0;           // element 32: 15
  b.qs[2 * 32 + 1] = 0x10;  // element 161 (in group 5): 1
  std::vector<float> expected(256, 0.0f);
  for (int i = 32; i < 64; ++i) expected[i] = -3;
  expected[32] = 0.5f * 2 * 15 - 3;
  for (int i = 160; i < 192; ++i) expected[i] = -5;
  expected[161] = 0.5f * 33 * 1 - 5;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ5_K) {
  BlockQ5_K b{};
  b.d = FloatToHalf(0.25f);
  b.dmin = FloatToHalf(1);
  b.scales[0] = 63;    // group 0: scale 63
  b.scales[7] = 0x40;  // group 7: upper bits of the min 1 (16)
  b.qs[4] = 0x0f;      // element 4: lower bits 15
  b.qh[4] = 0x01;      // and the fifth
  std::vector<float> expected(256, 0.0f);
  expected[4] = 0.25f * 63 * 31;
  for (int i = 224; i < 256; ++i) expected[i] = -16;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, ReadsQ6_K) {
  BlockQ6_K b{};
  b.d = FloatToHalf(0.5f);
  b.scales[0] = 1;
  b.scales[15] = -128;
  std::memset(b.qh, 0xaa, sizeof b.qh);  // codes 32: 0
  b.ql[0] = 0x01;                        // element 0: 33
  b.qh[32 + 31] = 0x2a;                  // element 255: code 0
  std::vector<float> expected(256, 0.0f);
  expected[0] = 0.5f;
  expected[255] = 0.5f * -128 * -32;
  EXPECT_EQ(Dequantize(b), expected);
}

TEST(DequantizeRow, PassesOnWhatABrokenScaleMakes) {
  BlockQ8_0 b{};
  b.d = 0x7c00;
  b.qs[1] = -1;
  const std::vector<float> values = Dequantize(b);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], -std::numeric_limits<float>::infinity());
}

TEST(DequantizeRow, AcceptsAnyAlignmentAndManyBlocks) {
  BlockQ4_0 blocks[2] = {};
  blocks[0].d = FloatToHalf(1);
  blocks[1].d = FloatToHalf(2);
  std::vector<std::byte> bytes(1 + sizeof blocks);
  std::memcpy(bytes.data() + 1, blocks, sizeof blocks);
  std::vector<float> values(64);
  DequantizeRow(TensorType::kQ4_0, std::span(bytes).subspan(1), values);
  EXPECT_EQ(values[31], -8);
  EXPECT_EQ(values[32], -16);
}

TEST(DequantizeRowDeathTest, InsistsOnTheSizeOfTheRow) {
  std::vector<std::byte> bytes(18);
  std::vector<float> values(64);
  EXPECT_DEATH(DequantizeRow(TensorType::kQ4_0, bytes, values), "src.size");
}

TEST(DotRow, SumsProductsAndTheirMagnitudes) {
  const std::uint16_t row[] = {FloatToHalf(2), FloatToHalf(-3), FloatToHalf(0.5f)};
  const float x[] = {1, 2, 4};
  const ReferenceDot dot = DotRow(TensorType::kF16, std::as_bytes(std::span(row)), x);
  EXPECT_EQ(dot.value, -2);
  EXPECT_EQ(dot.magnitude, 10);
}

}  // namespace
}  // namespace troupe
