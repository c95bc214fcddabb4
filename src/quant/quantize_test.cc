#include "quant/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/half.h"
#include "quant/block_codes.h"
#include "quant/random_rows.h"
#include "quant/round_trip.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

class QuantizeTo : public ::testing::TestWithParam<TensorType> {
 protected:
  Rng rng_{TestSeed()};
};
class QuantizeToBlocks : public QuantizeTo {};

std::string TypeName(const ::testing::TestParamInfo<TensorType>& test) {
  return std::string(Name(test.param));
}
INSTANTIATE_TEST_SUITE_P(Types, QuantizeTo, ::testing::ValuesIn(AllTypes()), TypeName);
INSTANTIATE_TEST_SUITE_P(Types, QuantizeToBlocks,
                         ::testing::Values(TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
                                           TensorType::kQ5_1, TensorType::kQ8_0),
                         TypeName);

// Plain numbers.

TEST(QuantizeRow, StoresF32AsItIs) {
  const Floats x = {1.5f, -0.0f, 1e-40f, 3e38f, -std::numeric_limits<float>::infinity()};
  const auto row = Quantize(TensorType::kF32, x);
  EXPECT_EQ(std::memcmp(row.data(), x.data(), row.size()), 0);
}

TEST(QuantizeRow, RoundsF16AndBf16ToTheNearest) {
  const Floats x = {1 + 0x1p-11f, 1 + 0x3p-11f, 1e6f, -0x1p-25f};
  EXPECT_EQ(RoundTrip(TensorType::kF16, x),
            (Floats{1, 1 + 0x1p-9f, std::numeric_limits<float>::infinity(), -0.0f}));
  EXPECT_EQ(RoundTrip(TensorType::kBF16, {1 + 0x1p-8f, 1 + 0x3p-8f}), (Floats{1, 1 + 0x1p-6f}));
}

// What holds for every type.

TEST_P(QuantizeTo, KeepsZeros) {
  for (const float v : RoundTrip(GetParam(), Floats(512, 0.0f))) ASSERT_EQ(v, 0);
}

// Nothing that is allowed makes a NaN, an infinity, or something larger than went in by more than
// the coarsest grid's half step (Q2_K's, at most a quarter of the range on either side).
TEST_P(QuantizeTo, KeepsExtremeRowsFinite) {
  std::vector<Floats> rows;
  for (const float size : {65504.0f, 1.0f, 6e-5f, 1e-6f, 1e-7f, 3e-8f, 1e-20f, 1e-45f}) {
    rows.push_back(Floats(512, size));
    rows.push_back(Floats(512, -size));
    Floats alternating(512), one(512), mostly(512, size);
    for (std::size_t i = 0; i < 512; ++i) alternating[i] = i % 2 == 0 ? size : -size;
    one[300] = -size;
    mostly[7] = 0;
    Floats normal = NormalValues(512, 1, rng_);
    for (float& v : normal) v = std::clamp(v / 4, -1.0f, 1.0f) * size;
    rows.insert(rows.end(), {alternating, one, mostly, normal});
  }
  for (const Floats& x : rows) {
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::fabs(v));
    for (const Floats& importance : {Floats(), Floats(512, 0.0f), Floats(512, 1e30f)}) {
      const float slack = 0.5f * largest + 127 * 0x1p-25f;
      for (const float v : RoundTrip(GetParam(), x, importance)) {
        ASSERT_LE(std::fabs(v), largest + slack) << "a row of magnitude " << largest;
      }
    }
  }
}

TEST_P(QuantizeTo, ReproducesWhatItStoredBefore) {
  for (int round = 0; round < 20; ++round) {
    const Floats x = NormalValues(256, 0.02, rng_);
    const Floats once = RoundTrip(GetParam(), x);
    if (Info(GetParam()).block_elems > 32 || GetParam() == TensorType::kIQ4_NL) {
      // A search need not find the same grid again, nor does NVFP4 where the largest magnitude was
      // rounded down, but one on which less is lost.
      ASSERT_LT(SquaredError(once, RoundTrip(GetParam(), once)), SquaredError(x, once));
    } else {
      ASSERT_EQ(Quantize(GetParam(), once), Quantize(GetParam(), x));
    }
  }
}

// No code of R bits per value brings the error of normal values below 2^(-2R) of their variance
// (rate-distortion theory); a test that claims less is wrong. And no type should be worse than
// uniform noise of the step that fits its groups' extremes, step^2 / 12: of n normal values the
// range is expected to be 4.14 (n = 32) or 3.53 (16) deviations, the largest magnitude 2.29
// or 2.03.
TEST_P(QuantizeTo, LosesWhatItsBitsMustAndNotMuchMore) {
  const TensorTypeInfo& info = Info(GetParam());
  const Floats x = NormalValues(256 * 100, 0.02, rng_);
  const double loss = SquaredError(x, RoundTrip(GetParam(), x)) / SumOfSquares(x);
  const double bits = 8.0 * info.block_bytes / info.block_elems;
  if (GetParam() == TensorType::kF32) {
    EXPECT_EQ(loss, 0);
    return;
  }
  double step = GetParam() == TensorType::kF16 ? 0x1p-10 : 0x1p-7;  // of numbers near 1
  WithBlockType(GetParam(), [&]<typename Block>() {
    std::size_t group = Block::kElems;
    if constexpr (requires { Block::kGroupElems; }) group = Block::kGroupElems;
    const double range = group == 32 ? 4.20 : 3.61;
    const double magnitude = group == 32 ? 2.39 : 2.13;
    // Steps of unequal size: at most a quarter of the largest magnitude where it has less than half
    // of that, as three of four normal values have.
    if constexpr (Block::kType == TensorType::kMXFP4 || kHasFloatScales<Block>) {
      step = magnitude / 4;
      return;
    }
    if constexpr (kHasBook<Block>) {
      // A word of few bits for many elements: within a bit of what its bits must lose.
      step = std::sqrt(12 * 4) * std::exp2(-bits);
      return;
    }
    step = Block::kHasMin ? range / Block::kMaxCode : magnitude / (Block::kMaxCode / 2);
  });
  EXPECT_GT(loss, std::exp2(-2 * bits));
  EXPECT_LT(loss, step * step / 12);
}

TEST_P(QuantizeTo, TreatsTheBlocksOfARowAlike) {
  const std::size_t n = 256;
  const Floats a = NormalValues(n, 1, rng_), b = NormalValues(n, 0.01, rng_);
  Floats both = a;
  both.insert(both.end(), b.begin(), b.end());
  auto expected = Quantize(GetParam(), a);
  const auto second = Quantize(GetParam(), b);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(Quantize(GetParam(), both), expected);
}

// The 32-element types.

// Every element is within half a step of its value, except that the end of a symmetric range
// without the extra level is a whole step short; d and m are rounded to halves, 2^-11 of
// themselves, and d counts for as many steps as the largest code has.
TEST_P(QuantizeToBlocks, StaysWithinHalfAStep) {
  WithBlockType(GetParam(), [&]<typename Block>() {
    for (int round = 0; round < 200; ++round) {
      const Floats x = HeavyTailedValues(Block::kElems, 0.02, rng_);
      const auto row = Quantize(GetParam(), x);
      Block b;
      std::memcpy(&b, row.data(), sizeof b);
      const Floats y = Dequantize(GetParam(), row, x.size());
      const float d = std::fabs(ScaleOf(b));
      float bound = d * (0.5f + Block::kMaxCode * 0x1p-11f);
      float at_the_end = bound;
      if constexpr (requires { b.m; }) {
        bound += std::fabs(HalfToFloat(b.m)) * 0x1p-11f;
        at_the_end = bound;
      } else if constexpr (Block::kType != TensorType::kQ8_0) {
        at_the_end += 0.5f * d;
      }
      const Codes<Block> codes = UnpackCodes(b);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool at_end = codes[i] == Block::kMaxCode;
        ASSERT_LE(std::fabs(x[i] - y[i]), at_end ? at_the_end : bound) << i;
      }
    }
  });
}

TEST_P(QuantizeToBlocks, LosesLessWhereItIsToldToCare) {
  const Floats x = NormalValues(32 * 64, 0.02, rng_);
  Floats importance(x.size());
  for (float& v : importance) v = static_cast<float>(std::exp(rng_.Normal()));
  if (GetParam() == TensorType::kQ8_0) {
    EXPECT_EQ(Quantize(GetParam(), x, importance), Quantize(GetParam(), x));
    return;
  }
  EXPECT_LT(SquaredError(x, RoundTrip(GetParam(), x, importance), importance),
            0.95 * SquaredError(x, RoundTrip(GetParam(), x), importance));
}

// What is refused.

TEST(CheckQuantizable, NamesTheFirstElementThatIsNot) {
  EXPECT_TRUE(CheckQuantizable(Floats{0, -65504, 65504}, "row").ok());
  EXPECT_TRUE(CheckQuantizable(Floats{}, "row").ok());
  const Status status = CheckQuantizable(Floats{0, 65505, std::nanf("")}, "blk.0.ffn_up, row 7");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "blk.0.ffn_up, row 7: element 1 is 65505, magnitudes up to 65504 can be quantized");
  EXPECT_FALSE(CheckQuantizable(Floats{std::nanf("")}, "row").ok());
  EXPECT_FALSE(CheckQuantizable(Floats{-std::numeric_limits<float>::infinity()}, "row").ok());
}

TEST(QuantizeRowDeathTest, InsistsOnItsPreconditions) {
  std::vector<std::byte> row(34);
  Floats x(32);
  EXPECT_DEATH(QuantizeRow(TensorType::kQ4_0, x, row), "dst.size");
  EXPECT_DEATH(QuantizeRow(TensorType::kQ8_0, x, row, Floats(31)), "importance.size");
  EXPECT_DEATH(QuantizeRow(TensorType::kQ8_0, x, row, Floats(32, -1.0f)), "importance");
  x[31] = std::nanf("");
  EXPECT_DEATH(QuantizeRow(TensorType::kQ8_0, x, row), "kMaxQuantizable");
}

}  // namespace
}  // namespace troupe
