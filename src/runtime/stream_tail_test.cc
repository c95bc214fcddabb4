#include "runtime/stream_tail.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

// Of two numbers each: position and `mark`.
std::vector<float> StreamRows(std::size_t first, std::size_t count, float mark) {
  std::vector<float> rows;
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back(static_cast<float>(first + i));
    rows.push_back(mark);
  }
  return rows;
}

class StreamTailTest : public testing::Test {
 protected:
  void Append(std::size_t first, std::size_t count, float mark) {
    tail_.Append(first, StreamRows(first, count, mark));
  }
  void ExpectRows(std::size_t first, std::size_t end, float mark) {
    for (std::size_t at = first; at < end; ++at) {
      EXPECT_EQ(tail_.Row(at)[0], static_cast<float>(at));
      EXPECT_EQ(tail_.Row(at)[1], mark);
    }
  }

  StreamTail tail_{2};
};

TEST_F(StreamTailTest, HasTheLastRowsOfASequence) {
  Append(0, 3, 1);
  Append(3, 4, 1);
  EXPECT_EQ(tail_.first(), 0u);
  EXPECT_EQ(tail_.end(), 7u);
  ExpectRows(0, 7, 1);
  Append(7, 700, 1);
  EXPECT_EQ(tail_.first(), 707 - StreamTail::kRows);
  ExpectRows(tail_.first(), 707, 1);
}

TEST_F(StreamTailTest, RowsOfForgottenTokensGiveWay) {
  Append(0, 6, 1);
  Append(4, 1, 2);
  EXPECT_EQ(tail_.end(), 5u);
  ExpectRows(0, 4, 1);
  ExpectRows(4, 5, 2);
}

TEST_F(StreamTailTest, BeginsAnewBehindWhatItHasNotSeen) {
  Append(0, 6, 1);
  Append(40, 2, 3);
  EXPECT_EQ(tail_.first(), 40u);
  ExpectRows(40, 42, 3);
  Append(0, 2, 4);  // another text
  EXPECT_EQ(tail_.first(), 0u);
  EXPECT_EQ(tail_.end(), 2u);
  ExpectRows(0, 2, 4);
}

}  // namespace
}  // namespace troupe
