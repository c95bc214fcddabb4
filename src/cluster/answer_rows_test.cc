#include "cluster/answer_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/half.h"
#include "base/rng.h"
#include "kernels/target.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr RowForm kForms[] = {RowForm::kFloat, RowForm::kInt8, RowForm::kBf16};

std::vector<std::byte> Written(RowForm form, const std::vector<float>& row) {
  std::vector<std::byte> bytes(1 + WireRowBytes(form, row.size()));
  AnswerRowWriter().Write(form, row, std::span(bytes).subspan(1));  // at an odd address
  return {bytes.begin() + 1, bytes.end()};
}

std::vector<float> Read(RowForm form, const std::vector<std::byte>& bytes, std::size_t width) {
  std::vector<float> row(width);
  ReadAnswerRow(form, bytes, row);
  return row;
}

std::vector<float> SentAndReadRow(RowForm form, const std::vector<float>& row) {
  return Read(form, Written(form, row), row.size());
}

std::vector<float> RandomRow(Rng& rng) {
  std::vector<float> row(kGroupCols * (1 + rng.Below(9)));
  const int exponent = static_cast<int>(rng.Below(160)) - 80;
  for (float& value : row) value = std::ldexp(static_cast<float>(rng.Normal()), exponent);
  return row;
}

TEST(AnswerRows, KeepEveryBitAsFloats) {
  Rng rng(TestSeed());
  std::vector<float> row(37);
  for (float& value : row) value = std::bit_cast<float>(static_cast<std::uint32_t>(rng()));
  const std::vector<float> read = SentAndReadRow(RowForm::kFloat, row);
  EXPECT_EQ(std::memcmp(read.data(), row.data(), row.size() * sizeof(float)), 0);
}

// Eight bits of a number are kept, and the nearest of those is at most half of their last one away.
TEST(AnswerRows, InBf16AreTheNearestAndDoNotChangeAgain) {
  Rng rng(TestSeed());
  for (std::size_t i = 0; i < TestCases(200); ++i) {
    std::vector<float> row = RandomRow(rng);
    row.resize(1 + rng.Below(row.size()));  // any width
    const std::vector<float> read = SentAndReadRow(RowForm::kBf16, row);
    for (std::size_t k = 0; k < row.size(); ++k) {
      ASSERT_EQ(read[k], Bf16ToFloat(FloatToBf16(row[k])));
      ASSERT_LE(std::abs(read[k] - row[k]), std::ldexp(std::abs(row[k]), -8));
    }
    ASSERT_EQ(SentAndReadRow(RowForm::kBf16, read), read);
  }
}

// A code is at most half a step from its number, a step is max / 127, and each of the few roundings
// of floats on the way adds less than a millionth of max.
TEST(AnswerRows, In8BitsAreWithinHalfAStepOfTheirGroup) {
  Rng rng(TestSeed());
  for (std::size_t i = 0; i < TestCases(200); ++i) {
    const std::vector<float> row = RandomRow(rng);
    const std::vector<float> read = SentAndReadRow(RowForm::kInt8, row);
    for (std::size_t first = 0; first < row.size(); first += kGroupCols) {
      float max = 0;
      for (std::size_t k = 0; k < kGroupCols; ++k) max = std::max(max, std::abs(row[first + k]));
      for (std::size_t k = 0; k < kGroupCols; ++k) {
        ASSERT_LE(std::abs(read[first + k] - row[first + k]), max * (0.5f / 127 + 1e-6f));
      }
    }
  }
}

TEST(AnswerRows, AreTheScalarTruthOnEveryInstructionSet) {
  Rng rng(TestSeed());
  for (std::size_t i = 0; i < TestCases(60); ++i) {
    const std::vector<float> row = RandomRow(rng);
    std::vector<std::byte> storage(ActivationBytes(1, row.size()));
    const Activations truth = MakeActivations(row.data(), row.size(), 1, row.size(), storage);
    QuantizeActivationsReference(truth, 0);
    std::vector<std::byte> expected(WireRowBytes(RowForm::kInt8, row.size()));
    PackRow({truth.Groups(0), row.size() / kGroupCols}, expected);
    for (const Target target : SupportedTargets()) {
      ForceTarget(target);
      EXPECT_EQ(Written(RowForm::kInt8, row), expected) << Name(target);
    }
    ForceTarget(std::nullopt);
  }
}

TEST(AnswerRows, WhatIsNoNumberStaysNone) {
  for (const float odd : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> row(2 * kGroupCols, 1.0f);
    row[3] = odd;
    for (const RowForm form : kForms) {
      const std::vector<float> read = SentAndReadRow(form, row);
      EXPECT_FALSE(std::isfinite(read[3])) << ToString(form);
      EXPECT_NEAR(read[kGroupCols], 1, 1e-6) << ToString(form) << ": another group";
    }
  }
}

TEST(AnswerRows, RoundingThemIsWhatTheirReaderHas) {
  Rng rng(TestSeed());
  const std::vector<float> first = RandomRow(rng);
  std::vector<float> second(first.rbegin(), first.rend());
  for (const RowForm form : kForms) {
    std::vector<float> rows = first, read = SentAndReadRow(form, first);
    rows.insert(rows.end(), second.begin(), second.end());
    const std::vector<float> behind = SentAndReadRow(form, second);
    read.insert(read.end(), behind.begin(), behind.end());
    RoundAnswerRows(form, first.size(), rows);
    EXPECT_EQ(rows, read) << ToString(form);
  }
}

}  // namespace
}  // namespace troupe
