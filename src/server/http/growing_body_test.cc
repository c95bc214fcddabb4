#include "server/http/growing_body.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

class GrowingBodyTest : public testing::Test {
 protected:
  std::size_t taken() const { return kAll - budget_->left(); }

  static constexpr std::size_t kAll = 1 << 20;
  std::shared_ptr<ByteBudget> budget_ = std::make_shared<ByteBudget>(kAll);
  GrowingBody body_;
};

TEST_F(GrowingBodyTest, TakesNoMoreThanTwiceWhatHasComeHoweverMuchIsAnnounced) {
  body_.Expect(budget_, 1'000'000);
  EXPECT_EQ(taken(), 0u);
  for (std::size_t sent = 5000; sent <= 300'000; sent += 5000) {
    ASSERT_TRUE(body_.Append(std::string(5000, 'x')));
    EXPECT_EQ(body_.size(), sent);
    EXPECT_GE(taken(), sent);
    EXPECT_LE(taken(), 2 * sent);
  }
}

TEST_F(GrowingBodyTest, TakesWhatWasAnnouncedWhenAllOfItIsThere) {
  body_.Expect(budget_, 70'000);
  std::string all;
  for (int i = 0; i < 70; ++i) {
    const std::string bytes(1000, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(body_.Append(bytes));
    all += bytes;
  }
  EXPECT_EQ(taken(), 70'000u);
  EXPECT_EQ(body_.TakeText(), all);
  EXPECT_EQ(taken(), 70'000u);  // until what holds it is let go of, too
  body_.TakeMemory();
  EXPECT_EQ(taken(), 0u);
}

TEST_F(GrowingBodyTest, StaysAsItIsWhereThereIsNoMemory) {
  body_.Expect(budget_, 0);
  ASSERT_TRUE(body_.Append(std::string(400'000, 'x')));
  EXPECT_FALSE(body_.Append(std::string(400'000, 'y')));  // both places together are too large
  EXPECT_EQ(taken(), 400'000u);
  EXPECT_EQ(body_.size(), 400'000u);
  body_.Drop();
  EXPECT_EQ(taken(), 0u);
  EXPECT_EQ(body_.size(), 0u);
}

}  // namespace
}  // namespace troupe
