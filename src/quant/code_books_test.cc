#include "quant/code_books.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "quant/block_formats.h"

namespace troupe {
namespace {

template <typename Block>
class BookOfType : public ::testing::Test {};
using TypesWithBooks = ::testing::Types<BlockIQ1_S, BlockIQ1_M, BlockIQ2_XXS, BlockIQ2_XS,
                                        BlockIQ2_S, BlockIQ3_XXS, BlockIQ3_S>;
TYPED_TEST_SUITE(BookOfType, TypesWithBooks);

TYPED_TEST(BookOfType, HoldsEachWordOnceInAscendingOrderAndNoDigitWithoutALevel) {
  const auto& book = BookOf<TypeParam>();
  EXPECT_TRUE(std::ranges::is_sorted(book));
  EXPECT_EQ(std::ranges::adjacent_find(book), book.end());
  for (const std::uint16_t word : book) {
    EXPECT_LT(word, 1u << (TypeParam::kDigitBits * TypeParam::kWordElems));
    for (std::size_t i = 0; i < TypeParam::kWordElems; ++i) {
      EXPECT_NE(TypeParam::kLevels[DigitOf<TypeParam>(word, i)], 0) << word;
    }
  }
}

TYPED_TEST(BookOfType, IsWidenedDigitByDigit) {
  for (std::size_t at = 0; at < BookOf<TypeParam>().size(); ++at) {
    const auto wide = static_cast<std::uint32_t>(kWideBook<TypeParam>.words[at]);
    for (std::size_t i = 0; i < TypeParam::kWordElems; ++i) {
      const unsigned digit = wide >> (i < 4 ? 8 * i : 8 * (i - 4) + 4) & 15;
      ASSERT_EQ(digit, DigitOf<TypeParam>(BookOf<TypeParam>()[at], i)) << at << ", digit " << i;
    }
  }
}

TEST(CodeBooks, HaveTheWordsThatOtherTestsName) {
  EXPECT_EQ(kWordsIq3S[0], 0);
  EXPECT_EQ(kWordsIq3Xxs[0], 0);
  EXPECT_EQ(kWordsIq3Xxs[1], 2);
  EXPECT_EQ(kWordsIq2Xxs[0], 0);
  EXPECT_EQ(kWordsIq2Xxs[1], 2);
  EXPECT_EQ(kWordsIq2Xs[0], 0);
  EXPECT_EQ(kWordsIq2S[0], 0);
  EXPECT_EQ(kWordsIq1[0], 0);
  EXPECT_EQ(kWordsIq1[2047], 0xaaaa);  // eight times 1
}

}  // namespace
}  // namespace troupe
