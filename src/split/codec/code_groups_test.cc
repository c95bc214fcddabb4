#include "split/codec/code_groups.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr StateForm kCodes[] = {StateForm::kInt8, StateForm::kInt4};

std::vector<std::byte> Packed(StateForm form, const std::vector<float>& numbers) {
  std::vector<std::byte> bytes(PackedBytes(form, numbers.size()));
  PackNumbers(form, numbers, bytes);
  return bytes;
}

std::vector<float> Unpacked(StateForm form, const std::vector<std::byte>& bytes,
                            std::size_t count) {
  std::vector<float> numbers(count);
  UnpackNumbers(form, bytes, numbers);
  return numbers;
}

TEST(CodeGroups, AGroupThatIsCutShortTakesNoMoreThanItsCodes) {
  EXPECT_EQ(PackedBytes(StateForm::kFloat, 5), 20u);
  EXPECT_EQ(PackedBytes(StateForm::kInt8, 32), 34u);
  EXPECT_EQ(PackedBytes(StateForm::kInt8, 69), 34u + 34 + 2 + 5);
  EXPECT_EQ(PackedBytes(StateForm::kInt4, 32), 18u);
  EXPECT_EQ(PackedBytes(StateForm::kInt4, 69), 18u + 18 + 2 + 3);
}

TEST(CodeGroups, FloatsComeBackBitForBit) {
  const std::vector<float> numbers = {-0.0f, std::numeric_limits<float>::infinity(), 1e-42f, 3.5f};
  const auto bytes = Packed(StateForm::kFloat, numbers);
  const auto back = Unpacked(StateForm::kFloat, bytes, numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(numbers[i]));
  }
}

TEST(CodeGroups, CodesAreOffByHalfAScaleAtMost) {
  Rng rng(TestSeed());
  for (int round = 0; round < 500; ++round) {
    for (const StateForm form : kCodes) {
      const double most_code = form == StateForm::kInt8 ? 127 : 7;
      std::vector<float> numbers(1 + rng.Below(kCodedTogether));  // one group
      const double size = std::exp2(rng.Normal() * 20);
      double most = 0;
      for (float& x : numbers) {
        x = static_cast<float>(size * rng.Normal());
        most = std::max(most, std::abs(double{x}));
      }
      const auto back = Unpacked(form, Packed(form, numbers), numbers.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        // The scale is rounded by 2^-8 of itself at most, x / scale by 2^-24 of a code.
        const double half = most / most_code * (1 + 0x1p-8) / 2;
        EXPECT_LE(std::abs(double{back[i]} - numbers[i]), half + most * 0x1p-8 + most * 0x1p-22);
      }
    }
  }
}

TEST(CodeGroups, EachGroupHasAScaleOfItsOwn) {
  std::vector<float> numbers(kCodedTogether, 1e6f);
  numbers.insert(numbers.end(), kCodedTogether, 1.0f);
  for (const StateForm form : kCodes) {
    const auto back = Unpacked(form, Packed(form, numbers), numbers.size());
    EXPECT_NEAR(back.front(), 1e6f, 1e4f);
    EXPECT_NEAR(back.back(), 1.0f, 1e-2f);
  }
}

TEST(CodeGroups, ZerosStayZeros) {
  for (const StateForm form : kCodes) {
    EXPECT_EQ(Unpacked(form, Packed(form, std::vector<float>(40)), 40), std::vector<float>(40));
  }
}

TEST(CodeGroups, NothingOfAGroupWithAnInfinityPassesForANumber) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const StateForm form : kCodes) {
      const auto back = Unpacked(form, Packed(form, {1.0f, bad, 2.0f}), 3);
      for (const float x : back) EXPECT_FALSE(std::isfinite(x));
    }
  }
}

TEST(CodeGroups, BytesAreThoseOfTheFormat) {
  const std::vector<float> numbers = {127, -64, 1};
  const std::vector<std::byte> eight = {std::byte{0x80}, std::byte{0x3F}, std::byte{127},
                                        std::byte{0xC0}, std::byte{1}};  // bf16 1.0 is 0x3F80
  EXPECT_EQ(Packed(StateForm::kInt8, numbers), eight);
  const std::vector<std::byte> four = {std::byte{0x80}, std::byte{0x3F}, std::byte{0x5F},
                                       std::byte{0x09}};  // 7 + 8 low, -3 + 8 high; 1 + 8
  EXPECT_EQ(Packed(StateForm::kInt4, {7, -3, 1}), four);
}

}  // namespace
}  // namespace troupe
