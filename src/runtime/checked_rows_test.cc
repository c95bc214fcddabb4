#include "runtime/checked_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;

// The logits of row r are r and -r.
class Checked : public testing::Test {
 protected:
  float First(std::size_t entry, std::size_t row) {
    const auto logits = rows_.Of(entry, row, [&](std::span<const std::uint32_t> rows, float* to) {
      asked_.emplace_back(rows.begin(), rows.end());
      for (const std::uint32_t r : rows) *to++ = static_cast<float>(r), *to++ = -1.0F;
    });
    EXPECT_EQ(logits.size(), 2u);
    return logits[0];
  }

  std::vector<float> buffer_ = std::vector<float>(6);  // three rows
  CheckedRows rows_;
  std::vector<std::vector<std::uint32_t>> asked_;
};

TEST_F(Checked, ComputesSomeRowsAtATimeAndOnlyAsFarAsAnybodyLooks) {
  rows_.Begin(buffer_, 2);
  rows_.AddEntry(0, 0);
  rows_.AddEntry(5, 5);
  rows_.AddEntry(12, 2);
  EXPECT_TRUE(rows_.any());
  EXPECT_EQ(First(1, 0), 5);
  EXPECT_EQ(First(1, 1), 6);
  EXPECT_EQ(First(1, 2), 7);
  EXPECT_EQ(First(1, 3), 8);
  EXPECT_EQ(First(2, 0), 12);  // beside those of the entry before
  EXPECT_EQ(First(2, 1), 13);
  EXPECT_THAT(asked_, ElementsAre(ElementsAre(5, 6, 7), ElementsAre(8, 9, 12), ElementsAre(13)));
  EXPECT_EQ(rows_.computed(), 7u);
}

TEST_F(Checked, LeavesOutTheRestOfAnEntryAfterAWrongGuess) {
  rows_.Begin(buffer_, 2);
  rows_.AddEntry(0, 9);
  rows_.AddEntry(9, 3);
  EXPECT_EQ(First(0, 0), 0);
  EXPECT_EQ(First(1, 0), 9);
  EXPECT_THAT(asked_, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(9, 10, 11)));
}

TEST_F(Checked, APassWithoutDraftsHasNone) {
  rows_.Begin(buffer_, 2);
  rows_.AddEntry(0, 0);
  EXPECT_FALSE(rows_.any());
}

}  // namespace
}  // namespace troupe
