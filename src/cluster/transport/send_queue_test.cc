#include "cluster/transport/send_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

Frame FrameOf(std::size_t bytes, int value = 0) { return Frame(bytes, std::byte(value)); }

TEST(SendQueue, TheFirstFrameIsWrittenAndTheNextOnesFollowInOrder) {
  UnsentBytes all(1000);
  SendQueue queue(100, all);
  EXPECT_EQ(queue.Push(FrameOf(10, 1)).value(), FrameOf(10, 1));
  EXPECT_EQ(queue.Push(FrameOf(20, 2)).value(), std::nullopt);
  EXPECT_EQ(queue.Push(FrameOf(0)).value(), std::nullopt);
  EXPECT_EQ(queue.Push(FrameOf(30, 3)).value(), std::nullopt);
  EXPECT_EQ(queue.bytes(), 60);
  EXPECT_EQ(queue.Written(), FrameOf(20, 2));
  EXPECT_EQ(queue.bytes(), 50);
  EXPECT_EQ(queue.Written(), FrameOf(0));
  EXPECT_EQ(queue.Written(), FrameOf(30, 3));
  EXPECT_EQ(queue.Written(), std::nullopt);
  EXPECT_EQ(queue.bytes(), 0);
  EXPECT_EQ(queue.Push(FrameOf(5, 4)).value(), FrameOf(5, 4)) << "nothing is being written";
}

TEST(SendQueue, AFrameOverTheLimitIsRefusedAndTheOthersStay) {
  UnsentBytes all(1000);
  SendQueue queue(100, all);
  ASSERT_TRUE(queue.Push(FrameOf(60)).ok());
  const auto refused = queue.Push(FrameOf(41));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("60 bytes wait"));
  EXPECT_EQ(queue.bytes(), 60);
  EXPECT_TRUE(queue.Push(FrameOf(40, 7)).ok()) << "exactly the limit";
  EXPECT_FALSE(queue.Push(FrameOf(1)).ok());
  EXPECT_EQ(queue.Written(), FrameOf(40, 7));
  EXPECT_TRUE(queue.Push(FrameOf(60)).ok());
}

TEST(SendQueue, LinksShareALimitButWhatIsSmallGetsThrough) {
  constexpr std::size_t kMega = 1 << 20;
  UnsentBytes all(15 * kMega);
  {
    SendQueue one(10 * kMega, all), other(10 * kMega, all);
    ASSERT_TRUE(one.Push(FrameOf(9 * kMega)).ok());
    EXPECT_EQ(other.Push(FrameOf(7 * kMega)).status().code(), Code::kResourceExhausted);
    ASSERT_TRUE(other.Push(FrameOf(6 * kMega)).ok());
    EXPECT_FALSE(one.Push(FrameOf(1)).ok());
    SendQueue third(10 * kMega, all);
    EXPECT_TRUE(third.Push(FrameOf(kMega)).ok());
    EXPECT_FALSE(third.Push(FrameOf(1)).ok());
    (void)one.Written();
    EXPECT_EQ(all.taken(), 7 * kMega);
    ASSERT_TRUE(one.Push(FrameOf(8 * kMega)).ok());
    other.Clear();
    EXPECT_EQ(all.taken(), 9 * kMega);
  }
  EXPECT_EQ(all.taken(), 0u);
}

TEST(SendQueue, AfterALossNothingOfTheOldConnectionIsLeft) {
  UnsentBytes all(1000);
  SendQueue queue(100, all);
  ASSERT_TRUE(queue.Push(FrameOf(60)).ok());
  ASSERT_TRUE(queue.Push(FrameOf(40)).ok());
  queue.Clear();
  EXPECT_EQ(queue.bytes(), 0);
  EXPECT_EQ(queue.Written(), std::nullopt) << "the end of a write of the old connection";
  EXPECT_EQ(queue.Push(FrameOf(100, 9)).value(), FrameOf(100, 9));
}

TEST(SendQueue, AgreesWithACountOfItsBytes) {
  Rng rng(TestSeed());
  UnsentBytes all(1000);
  SendQueue queue(1000, all);
  std::deque<std::size_t> sizes;
  for (int step = 0; step < 10'000; ++step) {
    std::size_t sum = 0;
    for (const std::size_t size : sizes) sum += size;
    ASSERT_EQ(queue.bytes(), sum);
    if (rng.Below(2) == 0) {
      const std::size_t size = rng.Below(300);
      const bool fits = sum + size <= 1000;
      ASSERT_EQ(queue.Push(FrameOf(size)).ok(), fits);
      if (fits) sizes.push_back(size);
    } else {
      if (!sizes.empty()) sizes.pop_front();
      const auto next = queue.Written();
      ASSERT_EQ(next.has_value(), !sizes.empty());
      if (next) {
        ASSERT_EQ(next->size(), sizes.front());
      }
    }
  }
}

}  // namespace
}  // namespace troupe
