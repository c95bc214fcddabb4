#include "server/http/unread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace troupe {
namespace {

constexpr std::size_t kSmall = UnreadPool::kAlways;

class UnreadPoolTest : public testing::Test {
 protected:
  std::function<void()> Tell(int who) {
    return [this, who] { told_.push_back(who); };
  }

  const std::shared_ptr<UnreadPool> pool_ = std::make_shared<UnreadPool>(10 * kSmall);
  std::vector<int> told_;
};

TEST_F(UnreadPoolTest, WhoHasMostGoesWhenThereIsNoRoomForAnother) {
  UnreadPool::Share slow(pool_, Tell(1)), slower(pool_, Tell(2)), reads(pool_, Tell(3));
  ASSERT_TRUE(slow.Take(4 * kSmall));
  ASSERT_TRUE(slower.Take(6 * kSmall));
  EXPECT_TRUE(reads.Take(2 * kSmall));
  EXPECT_EQ(told_, std::vector{2});
  EXPECT_TRUE(slower.goes());
  EXPECT_FALSE(slow.goes() || reads.goes());
  EXPECT_FALSE(slower.Take(1));
  EXPECT_TRUE(slow.Take(3 * kSmall));  // what goes does not count
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(UnreadPoolTest, WhoWouldHaveMostHimselfGoesAndNobodyElse) {
  UnreadPool::Share slow(pool_, Tell(1)), slower(pool_, Tell(2));
  ASSERT_TRUE(slow.Take(4 * kSmall));
  ASSERT_TRUE(slower.Take(5 * kSmall));
  EXPECT_FALSE(slower.Take(2 * kSmall));
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(pool_->unread(), 9 * kSmall);
}

TEST_F(UnreadPoolTest, AShortAnswerAlwaysFindsRoom) {
  std::vector<std::unique_ptr<UnreadPool::Share>> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(std::make_unique<UnreadPool::Share>(pool_, Tell(i)));
    ASSERT_TRUE(slow.back()->Take(kSmall / 10));
  }
  UnreadPool::Share reads(pool_, Tell(100));
  EXPECT_TRUE(reads.Take(kSmall));
  EXPECT_EQ(told_.size(), 10u);
  EXPECT_FALSE(reads.goes());
}

TEST_F(UnreadPoolTest, EverythingIsGivenBackAlsoByThoseThatGo) {
  {
    UnreadPool::Share slow(pool_, Tell(1)), reads(pool_, Tell(2));
    ASSERT_TRUE(slow.Take(10 * kSmall));
    ASSERT_TRUE(reads.Take(5 * kSmall));
    slow.Give(kSmall);
    EXPECT_EQ(pool_->unread(), 14 * kSmall);
  }
  EXPECT_EQ(pool_->unread(), 0u);
  UnreadPool::Share next(pool_, Tell(3));
  EXPECT_TRUE(next.Take(10 * kSmall));
  EXPECT_EQ(told_, std::vector{1});
}

TEST_F(UnreadPoolTest, ManyThreadsTakeAndGiveAndNothingIsLost) {
  std::vector<std::thread> threads;
  std::atomic<int> told = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        UnreadPool::Share share(pool_, [&] { ++told; });
        for (int piece = 0; piece < 8 && share.Take(kSmall); ++piece) {
        }
        if (share.Take(kSmall)) share.Give(kSmall);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool_->unread(), 0u);
}

}  // namespace
}  // namespace troupe
