#include "split/codec/code_entropy.h"

#include <gtest/gtest.h>

#include "split/codec/code_groups.h"

namespace troupe {
namespace {

constexpr std::size_t kRowsCounted = 64;

// Rows of two groups: the first of equal codes, the second of `kinds` that are as frequent as each
// other.
double BitsOf(StateForm form, int kinds) {
  StateFrame frame{.width = 2 * kCodedTogether, .code = {.form = form}, .rows = kRowsCounted};
  std::vector<std::byte> rows(frame.rows_bytes());
  for (std::size_t r = 0; r < kRowsCounted; ++r) {
    std::vector<float> numbers(frame.width, 7.0f);
    for (std::size_t i = kCodedTogether; i < numbers.size(); ++i) {
      numbers[i] = 7 - static_cast<float>(i % static_cast<std::size_t>(kinds));
    }
    PackNumbers(form, numbers, std::span(rows).subspan(r * frame.row_bytes(), frame.row_bytes()));
  }
  CodeEntropy entropy;
  entropy.Add(frame, rows);
  return entropy.BitsACode();
}

TEST(CodeEntropy, EachGroupGoesByItsOwnFrequencies) {
  for (const StateForm form : {StateForm::kInt8, StateForm::kInt4}) {
    EXPECT_DOUBLE_EQ(BitsOf(form, 1), 0);
    EXPECT_DOUBLE_EQ(BitsOf(form, 2), 0.5);  // of 1 bit in one of two groups
    EXPECT_DOUBLE_EQ(BitsOf(form, 8), 1.5);
  }
  EXPECT_EQ(CodeEntropy().BitsACode(), 0);
}

}  // namespace
}  // namespace troupe
