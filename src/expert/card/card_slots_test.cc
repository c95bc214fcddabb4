#include "expert/card/card_slots.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kGrid{.layers = 3, .experts = 8};
constexpr std::uint32_t kNoLayer = 99;

void Bring(CardSlots& slots, ExpertId id) {
  ASSERT_TRUE(slots.MakeRoom(id, kNoLayer).has_value());
  slots.OnCopied(id, true);
}

TEST(CardSlotsTest, AnExpertIsThereOnceItsCopyHasEnded) {
  CardSlots slots(kGrid, 2);
  EXPECT_FALSE(slots.Has({1, 2}));
  const auto room = slots.MakeRoom({1, 2}, 1);
  ASSERT_TRUE(room);
  EXPECT_FALSE(room->leaves);
  EXPECT_TRUE(slots.Has({1, 2}));
  EXPECT_FALSE(slots.SlotOf({1, 2}));
  slots.OnCopied({1, 2}, true);
  EXPECT_EQ(slots.SlotOf({1, 2}), room->slot);
  EXPECT_EQ(slots.held(), 1u);
}

TEST(CardSlotsTest, ACopyThatFailedLeavesItsSlotToOthers) {
  CardSlots slots(kGrid, 1);
  ASSERT_TRUE(slots.MakeRoom({0, 0}, kNoLayer));
  slots.OnCopied({0, 0}, false);
  EXPECT_FALSE(slots.Has({0, 0}));
  Bring(slots, {0, 1});
  EXPECT_TRUE(slots.SlotOf({0, 1}));
}

TEST(CardSlotsTest, TheLeastPopularMakesRoomForOneThatIsClearlyMoreSo) {
  CardSlots slots(kGrid, 2);
  for (int i = 0; i < 4; ++i) slots.OnAsked({0, 0});
  for (int i = 0; i < 8; ++i) slots.OnAsked({0, 1});
  Bring(slots, {0, 0});
  Bring(slots, {0, 1});
  for (int i = 0; i < 5; ++i) slots.OnAsked({0, 2});
  EXPECT_FALSE(slots.MakeRoom({0, 2}, kNoLayer)) << "5 asks are hardly more than 4";
  slots.OnAsked({0, 2});
  EXPECT_EQ(slots.MakeRoom({0, 2}, kNoLayer)->leaves, (ExpertId{0, 0}));
  EXPECT_FALSE(slots.Has({0, 0}));
  EXPECT_TRUE(slots.Has({0, 1}));
  EXPECT_EQ(slots.evictions(), 1u);
}

TEST(CardSlotsTest, ExpertsOfTheLayerUnderWayKeepTheirSlots) {
  CardSlots slots(kGrid, 1);
  Bring(slots, {0, 0});
  slots.OnAsked({0, 1});
  EXPECT_FALSE(slots.MakeRoom({0, 1}, 0));
  EXPECT_TRUE(slots.MakeRoom({0, 1}, 1));
}

TEST(CardSlotsTest, WhatIsOnItsWayIsNotEvicted) {
  CardSlots slots(kGrid, 1);
  ASSERT_TRUE(slots.MakeRoom({0, 0}, kNoLayer));
  slots.OnAsked({0, 1});
  EXPECT_FALSE(slots.MakeRoom({0, 1}, kNoLayer));
}

TEST(CardSlotsTest, AsksOfLongAgoCountLess) {
  CardSlots slots(kGrid, 1);
  for (int i = 0; i < 8; ++i) slots.OnAsked({0, 0});
  Bring(slots, {0, 0});
  for (int pass = 0; pass < 256; ++pass) slots.OnPassBegins();
  EXPECT_NEAR(slots.Popularity({0, 0}), 0.5, 1e-9);
  slots.OnAsked({0, 1});
  EXPECT_TRUE(slots.MakeRoom({0, 1}, kNoLayer)) << "one ask now is more than eight four lives ago";
}

TEST(CardSlotsTest, PopularityOutlivesAnyNumberOfPasses) {
  CardSlots slots(kGrid, 1);
  for (int pass = 0; pass < 100'000; ++pass) {
    slots.OnPassBegins();
    slots.OnAsked({0, 0});
    if (pass % 2 == 0) slots.OnAsked({0, 1});
  }
  EXPECT_GT(slots.Popularity({0, 0}), 1.9 * slots.Popularity({0, 1}));
  EXPECT_LT(slots.Popularity({0, 0}), 200);
}

TEST(CardSlotsTest, NoSlotHasTwoHoldersWhateverHappens) {
  Rng rng(TestSeed());
  CardSlots slots(kGrid, 4);
  std::map<ExpertId, std::uint32_t> coming, there;
  for (int step = 0; step < 20'000; ++step) {
    const ExpertId id{static_cast<std::uint32_t>(rng.Below(3)),
                      static_cast<std::uint32_t>(rng.Below(8))};
    slots.OnPassBegins();
    slots.OnAsked(id);
    if (!slots.Has(id)) {
      const auto room = slots.MakeRoom(id, static_cast<std::uint32_t>(rng.Below(3)));
      if (room) {
        const auto gone =
            std::erase_if(there, [&](const auto& one) { return one.second == room->slot; });
        ASSERT_EQ(gone, room->leaves ? 1u : 0u);
        for (const auto& [other, its] : coming) ASSERT_NE(its, room->slot) << ToString(other);
        coming[id] = room->slot;
      }
    }
    if (!coming.empty() && rng.Below(2) == 0) {
      const auto [which, slot] = *coming.begin();
      const bool well = rng.Below(4) != 0;
      slots.OnCopied(which, well);
      if (well) there[which] = slot;
      coming.erase(which);
    }
    ASSERT_EQ(slots.held(), there.size());
    for (const auto& [which, slot] : there) ASSERT_EQ(slots.SlotOf(which), slot);
  }
  EXPECT_GT(slots.evictions(), 100u);
}

}  // namespace
}  // namespace troupe
