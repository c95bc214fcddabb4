#include "split/codec/coded_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "split/codec/code_groups.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Any bytes: what nobody has packed must come back as well, but for half bytes that no number has.
std::vector<std::byte> AnyRows(const StateFrame& frame, Rng& rng) {
  std::vector<std::byte> rows(frame.rows_bytes());
  for (std::byte& byte : rows)
    byte = static_cast<std::byte>(rng.Below(rng.Below(2) == 0 ? 3 : 256));
  return rows;
}

StateFrame FrameOf(StateForm form, std::uint32_t rows, std::uint32_t rank) {
  return {.layer = 1,
          .width = 70,
          .kept = 2,
          .code = {.rank = rank, .form = form, .rans = true},
          .rows = rows};
}

TEST(CodedRows, ComeBackByteForByteWhateverTheyAre) {
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    const StateFrame frame =
        FrameOf(round % 2 == 0 ? StateForm::kInt8 : StateForm::kInt4,
                static_cast<std::uint32_t>(1 + rng.Below(30)),
                static_cast<std::uint32_t>(round % 3 == 0 ? 2 * (1 + rng.Below(30)) : 0));
    const std::vector<std::byte> rows = AnyRows(frame, rng);
    std::vector<std::byte> coded, back(rows.size());
    AppendCodedRows(frame, rows, coded);
    // Each of three streams is as long as it was, and a word, at most; codes have a byte each
    // there.
    const std::size_t most = rows.size() + 6 + frame.rows * 68;
    EXPECT_LE(coded.size(), most);
    ASSERT_TRUE(ReadCodedRows(frame, coded, back).ok()) << "round " << round;
    EXPECT_EQ(back, rows);
  }
}

TEST(CodedRows, CodesOfFewKindsTakeLess) {
  Rng rng(TestSeed());
  const StateFrame frame = FrameOf(StateForm::kInt4, 64, 0);
  std::vector<float> numbers(68);
  std::vector<std::byte> rows(frame.rows_bytes());
  for (std::size_t r = 0; r < frame.rows; ++r) {
    for (float& x : numbers) x = static_cast<float>(rng.Normal());
    PackNumbers(StateForm::kInt4, numbers,
                std::span(rows).subspan(r * frame.row_bytes() + 8, frame.row_bytes() - 8));
  }
  std::vector<std::byte> coded;
  AppendCodedRows(frame, rows, coded);
  EXPECT_LT(static_cast<double>(coded.size()), 0.95 * static_cast<double>(rows.size()));
}

TEST(CodedRows, TooFewBytesAndTooManyAreToldInALine) {
  Rng rng(TestSeed());
  const StateFrame frame = FrameOf(StateForm::kInt4, 8, 0);
  const std::vector<std::byte> rows = AnyRows(frame, rng);
  std::vector<std::byte> coded, back(rows.size());
  AppendCodedRows(frame, rows, coded);
  for (std::size_t size = 0; size < coded.size(); ++size) {
    EXPECT_EQ(ReadCodedRows(frame, std::span(coded).first(size), back).code(), Code::kDataLoss);
  }
  coded.push_back(std::byte{0});
  EXPECT_THAT(ReadCodedRows(frame, coded, back).message(), HasSubstr("1 bytes behind the last"));
}

}  // namespace
}  // namespace troupe
