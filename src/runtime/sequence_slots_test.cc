#include "runtime/sequence_slots.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(SequenceSlots, AreNumberedFromZeroAndRunOut) {
  SequenceSlots slots(2);
  const auto first = slots.Take(), second = slots.Take();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->id(), 0u);
  EXPECT_EQ(second->id(), 1u);
  EXPECT_FALSE(slots.Take());
}

TEST(SequenceSlots, ANumberIsUsedAgainOnceItsSlotIsGone) {
  SequenceSlots slots(2);
  std::optional<SequenceSlots::Slot> first = slots.Take();
  const auto second = slots.Take();
  first.reset();
  const auto third = slots.Take();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->id(), 0u);
  EXPECT_FALSE(slots.Take());
}

TEST(SequenceSlots, AMovedSlotIsGivenBackOnce) {
  SequenceSlots slots(1);
  {
    SequenceSlots::Slot first = *slots.Take();
    const SequenceSlots::Slot moved = std::move(first);
    EXPECT_EQ(moved.id(), 0u);
    EXPECT_FALSE(slots.Take());
  }
  EXPECT_TRUE(slots.Take());
}

}  // namespace
}  // namespace troupe
