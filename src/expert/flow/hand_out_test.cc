#include "expert/flow/hand_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expert/cache/lru.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ExpertGrid kHandOutGrid{.layers = 1, .experts = 8};

class HandOutTest : public testing::Test {
 protected:
  // An expert that is in the cache.
  void Add(std::uint32_t expert) {
    const ExpertId id{0, expert};
    cache_.Need(id, ExpertCopy::kFull);
    ASSERT_TRUE(cache_.Admit(id).has_value());
    cache_.OnLoaded(id);
    hand_out_.Add({.expert = expert}, cache_.PinResident(id));
  }
  static std::vector<std::uint32_t> Of(std::span<const Given> given) {
    std::vector<std::uint32_t> experts;
    for (const Given& ready : given) experts.push_back(ready.expert);
    return experts;
  }
  bool HasRoom() {
    const ExpertId id{0, 7};
    const bool room = cache_.Admit(id).has_value();
    if (room) cache_.Abandon(id);
    return room;
  }

  ExpertCache cache_{{.grid = kHandOutGrid, .slots = 3, .quotas = {}},
                     std::make_unique<Lru>(kHandOutGrid)};
  HandOut hand_out_;
};

TEST_F(HandOutTest, GivesInTheOrderInWhichTheyCameAndNoMoreThanAskedFor) {
  for (const std::uint32_t expert : {4u, 2u, 5u}) Add(expert);
  EXPECT_THAT(Of(hand_out_.Give(0)), IsEmpty());
  EXPECT_THAT(Of(hand_out_.Give(2)), ElementsAre(4, 2));
  EXPECT_THAT(Of(hand_out_.Give(2)), ElementsAre(5));
  EXPECT_EQ(hand_out_.ready(), 0u);
}

TEST_F(HandOutTest, GivesTheOneThatIsNamed) {
  for (const std::uint32_t expert : {4u, 2u, 5u}) Add(expert);
  EXPECT_FALSE(hand_out_.IsReady(3));
  EXPECT_TRUE(hand_out_.IsReady(5));
  EXPECT_THAT(Of(hand_out_.GiveOne(5)), ElementsAre(5));
  EXPECT_FALSE(hand_out_.IsReady(5));
  EXPECT_THAT(Of(hand_out_.Give(9)), ElementsAre(4, 2));
}

TEST_F(HandOutTest, CountsTheResidentsThatAreStillToBeGiven) {
  Add(4);
  Add(2);
  hand_out_.MarkResidents();
  Add(5);
  EXPECT_EQ(hand_out_.residents(), 2u);
  hand_out_.Give(1);
  EXPECT_EQ(hand_out_.residents(), 1u);
  hand_out_.Give(2);
  EXPECT_EQ(hand_out_.residents(), 0u);
}

TEST_F(HandOutTest, ASlotIsKeptUntilTheNextIsAskedForOrEverythingIsForgotten) {
  for (const std::uint32_t expert : {4u, 2u, 5u}) Add(expert);
  hand_out_.GiveOne(2);
  EXPECT_FALSE(HasRoom());  // all three are pinned, one of them given
  hand_out_.LetGoOfGiven();
  EXPECT_TRUE(HasRoom());
  EXPECT_EQ(cache_.Find({0, 2}), Residence::kAbsent);  // the one that was let go of gave way
  hand_out_.Forget();
  EXPECT_EQ(hand_out_.ready(), 0u);
  EXPECT_TRUE(HasRoom());
}

}  // namespace
}  // namespace troupe
