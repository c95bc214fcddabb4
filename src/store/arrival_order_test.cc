#include "store/arrival_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Stretch = ArrivalOrder::Stretch;

constexpr std::uint64_t kAnyNumber = 1'000'000;

class ArrivalOrderTest : public testing::Test {
 protected:
  // Two pieces of the first part, of 150 bytes, and one of the second.
  ArrivalOrderTest() {
    for (const auto& [part, upto] : {std::pair(0, 100), {0, 150}, {1, 30}}) {
      numbers_.push_back(
          order_.Expect(static_cast<std::size_t>(part), static_cast<std::uint64_t>(upto)));
    }
  }

  std::vector<Stretch> TakeAll(std::uint64_t most) {
    std::vector<Stretch> all;
    while (order_.HasMore()) all.push_back(order_.Take(most));
    return all;
  }

  ArrivalOrder order_;
  std::vector<std::size_t> numbers_;
};

TEST_F(ArrivalOrderTest, GivesWhatHasComeAsItComesInOrder) {
  EXPECT_FALSE(order_.HasMore());
  order_.OnCame(numbers_[0]);
  EXPECT_THAT(TakeAll(kAnyNumber), ElementsAre(Stretch{0, 0, 100}));
  order_.OnCame(numbers_[1]);
  order_.OnCame(numbers_[2]);
  EXPECT_THAT(TakeAll(kAnyNumber), ElementsAre(Stretch{0, 100, 50}, Stretch{1, 0, 30}));
}

TEST_F(ArrivalOrderTest, KeepsBackWhatComesBeforeAnEarlierPiece) {
  order_.OnCame(numbers_[2]);
  order_.OnCame(numbers_[1]);
  EXPECT_THAT(TakeAll(kAnyNumber), IsEmpty());
  order_.OnCame(numbers_[0]);
  EXPECT_THAT(TakeAll(kAnyNumber),
              ElementsAre(Stretch{0, 0, 100}, Stretch{0, 100, 50}, Stretch{1, 0, 30}));
}

TEST_F(ArrivalOrderTest, TheFirstBytesHaveComeOnceAllPiecesUpToThereHave) {
  order_.OnCame(numbers_[1]);
  EXPECT_FALSE(order_.HasCome(1));
  EXPECT_FALSE(order_.HasCome(120));
  order_.OnCame(numbers_[0]);
  EXPECT_TRUE(order_.HasCome(100));
  EXPECT_TRUE(order_.HasCome(150));
  EXPECT_FALSE(order_.HasCome(151));  // there are no more of the first part
}

TEST_F(ArrivalOrderTest, GivesNoMoreAtOnceThanIsAskedFor) {
  for (const std::size_t number : numbers_) order_.OnCame(number);
  EXPECT_THAT(TakeAll(60), ElementsAre(Stretch{0, 0, 60}, Stretch{0, 60, 40}, Stretch{0, 100, 50},
                                       Stretch{1, 0, 30}));
}

}  // namespace
}  // namespace troupe
