#include "split/reading_line.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ReadingLine, EachRunKnowsWhatIsBeforeItAsThoseAreReadAndLeave) {
  ReadingLine line;
  const auto first = std::make_shared<RunLeft>(), third = std::make_shared<RunLeft>();
  const ReadingLine::Place one = line.Add(first, 100, 1);
  const ReadingLine::Place two = line.Add(nullptr, 50, 2);
  const ReadingLine::Place three = line.Add(third, 10, 3);
  EXPECT_EQ(line.to_read(), 160u);
  EXPECT_EQ(third->runs, 2u);
  EXPECT_EQ(third->tokens, 150u);
  EXPECT_EQ(third->since, 3);
  EXPECT_EQ(line.runs(), 3u);
  line.Read(one, 30, 4);
  line.Read(one, 40, 5);
  EXPECT_TRUE(first->begun);
  EXPECT_EQ(first->own_tokens, 30u);
  EXPECT_EQ(third->tokens, 80u);
  line.Read(three, 8, 5);  // the first two were read before
  EXPECT_FALSE(third->begun);
  EXPECT_EQ(third->own_tokens, 8u);
  line.Remove(two, 6);
  EXPECT_EQ(third->tokens, 30u);
  EXPECT_EQ(third->runs, 1u);
  line.Remove(one, 7);
  EXPECT_EQ(third->runs + third->tokens, 0u);
  EXPECT_EQ(third->since, 7) << "nobody was before it any more";
  EXPECT_EQ(line.to_read(), 8u);
  line.Remove(three, 8);
  EXPECT_EQ(line.to_read(), 0u);
}

TEST(ReadingLine, ARunThatFindsLessThanWasBelievedHasTheRestBeforeItAndBeforeTheNextOnes) {
  ReadingLine line;
  const auto first = std::make_shared<RunLeft>(), second = std::make_shared<RunLeft>();
  const ReadingLine::Place one = line.Add(first, 48, 1);
  const ReadingLine::Place two = line.Add(second, 10, 2);
  line.Grow(one, 2528, 3);
  line.Read(one, 2528, 3);
  EXPECT_TRUE(first->begun);
  EXPECT_EQ(first->own_tokens, 2528u);
  EXPECT_EQ(second->tokens, 2528u);
  EXPECT_EQ(line.to_read(), 2538u);
  line.Grow(one, 100, 4);
  EXPECT_EQ(first->own_tokens, 2528u) << "it has not become less by that";
  line.Remove(one, 5);
  EXPECT_EQ(second->tokens, 0u);
  line.Remove(two, 6);
  EXPECT_EQ(line.to_read(), 0u);
}

}  // namespace
}  // namespace troupe
