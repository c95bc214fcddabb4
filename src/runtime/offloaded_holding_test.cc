#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "runtime/offloaded_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class OffloadedHoldingTest : public OffloadedExpertsTest {
 protected:
  void SetUp() override { Open(4); }
};

TEST_F(OffloadedHoldingTest, HeldExpertsAreFoundByEverybodyAndNeverEvicted) {
  const std::uint32_t held[] = {1, 2};
  ASSERT_TRUE(experts_->Hold(0, held).ok());
  EXPECT_EQ(experts_->held().count(), 2u);
  const auto use = experts_->held().Find({0, 2});
  ASSERT_TRUE(use);
  EXPECT_EQ(use->weights().gate.data[0], std::byte{2});
  for (int round = 0; round < 3; ++round) {  // more than the slots that are left
    Ask(1, {0, 1, 2, 3});
    TakeAll(4);
  }
  Ask(0, {1, 2});
  EXPECT_THAT(Take(false), UnorderedElementsAre(1, 2));
  EXPECT_EQ(use->weights().down.data[0], std::byte{2});
}

TEST_F(OffloadedHoldingTest, ExpertsAreReadToBeHeldWhilePassesGoOn) {
  reader_->Hold(true);
  const std::uint32_t held[] = {1, 2};
  experts_->BeginHolding(0, held);
  for (int pass = 0; pass < 3; ++pass) {
    experts_->OnPassBegins({});
    EXPECT_FALSE(experts_->GoOnHolding());
  }
  EXPECT_EQ(experts_->held().count(), 0u);
  experts_->OnPassBegins({});
  Ask(0, {2});  // its load serves both
  EXPECT_THAT(Take(true), ElementsAre(2));
  reader_->Hold(false);
  Ask(1, {0});
  EXPECT_THAT(TakeAll(1), ElementsAre(0));
  EXPECT_EQ(experts_->GoOnHolding(), OkStatus());
  EXPECT_EQ(experts_->held().count(), 2u);
  EXPECT_EQ(reader_->bytes_read(), 3 * experts_->loads().layouts()[0].SlotBytes());
  for (int round = 0; round < 3; ++round) {  // more than the slots that are left
    Ask(1, {0, 1, 2, 3});
    TakeAll(4);
  }
  EXPECT_EQ(experts_->held().Find({0, 2})->weights().down.data[0], std::byte{2});
}

TEST_F(OffloadedHoldingTest, APassFindsSlotsBesideAsManyExpertsOnTheirWayAsItsLayerHas) {
  quotas_ = {2, 2};
  Open(4);
  Ask(1, {0, 1});
  TakeAll(2);
  const std::uint32_t held[] = {1, 2};
  experts_->BeginHolding(0, held);
  experts_->OnPassBegins({});
  Ask(0, {0});
  EXPECT_THAT(Take(true), ElementsAre(0));
  Ask(1, {3});
  EXPECT_THAT(Take(true), ElementsAre(3));
  clock_.Advance(5'000'000);
  std::optional<Status> all = experts_->GoOnHolding();
  if (!all) clock_.Advance(5'000'000), all = experts_->GoOnHolding();
  EXPECT_EQ(all, OkStatus());
  EXPECT_EQ(experts_->held().count(), 2u);
}

TEST_F(OffloadedHoldingTest, WhereNobodyComputesExpertsToBeHeldAreWaitedFor) {
  reader_->Hold(true);
  const std::uint32_t held[] = {0, 3};
  experts_->BeginHolding(1, held);
  EXPECT_FALSE(experts_->GoOnHolding()) << "a pass may be about to begin";
  clock_.Advance(5'000'000);
  EXPECT_EQ(experts_->GoOnHolding(), OkStatus());
  EXPECT_EQ(experts_->held().count(), 2u);
}

TEST_F(OffloadedHoldingTest, MoreExpertsThanThereIsRoomForLeaveASlotForPasses) {
  EXPECT_EQ(experts_->UseSlots(3).slots, 3u);
  const std::uint32_t held[] = {0, 1, 2, 3};
  experts_->BeginHolding(1, held);
  EXPECT_EQ(experts_->UseSlots(1).slots, 4u) << "two on their way, and the least for passes";
  experts_->OnPassBegins({});
  Ask(0, {0, 1, 2});
  EXPECT_THAT(TakeAll(3), UnorderedElementsAre(0, 1, 2));
  clock_.Advance(5'000'000);
  std::optional<Status> refused = experts_->GoOnHolding();
  if (!refused) clock_.Advance(5'000'000), refused = experts_->GoOnHolding();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), Code::kResourceExhausted);
  EXPECT_EQ(experts_->held().count(), 2u);
}

TEST_F(OffloadedHoldingTest, AnExpertThatFailsBesidePassesIsTheErrorOfItsHoldingAlone) {
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kError; });
  const std::uint32_t one[] = {3};
  experts_->BeginHolding(0, one);
  experts_->OnPassBegins({});
  const std::optional<Status> failed = experts_->GoOnHolding();
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->ok());
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kNone; });
  Ask(1, {1});
  EXPECT_THAT(Take(true), ElementsAre(1));
  experts_->BeginHolding(0, one);
  clock_.Advance(5'000'000);
  EXPECT_EQ(experts_->GoOnHolding(), OkStatus());
  EXPECT_EQ(experts_->held().count(), 1u);
}

TEST_F(OffloadedHoldingTest, ExpertsThatWereFetchedAreHeldWithoutBeingRead) {
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kError; });
  const std::size_t bytes = experts_->loads().layouts()[0].SlotBytes();
  const FetchedExperts fetched = {{{0, 1}, std::vector<std::byte>(bytes, std::byte{1})},
                                  {{0, 2}, std::vector<std::byte>(bytes, std::byte{2})}};
  const std::uint32_t held[] = {1, 2}, other[] = {3};
  ASSERT_TRUE(experts_->Hold(0, held, fetched).ok());
  EXPECT_EQ(experts_->held().Find({0, 2})->weights().gate.data[0], std::byte{2});
  Ask(0, {1, 2});
  EXPECT_THAT(Take(false), UnorderedElementsAre(1, 2));
  EXPECT_FALSE(experts_->Hold(0, other, fetched).ok());  // that one must be read
  EXPECT_EQ(experts_->usage().bytes_read, 0u);
}

TEST_F(OffloadedHoldingTest, AFetchedExpertTakesTheSlotOfALoadThatIsStillUnderWay) {
  const std::uint32_t two[] = {0, 1}, fetched_one[] = {3};
  ASSERT_TRUE(experts_->Hold(1, two).ok());
  reader_->Hold(true);
  Ask(0, {0, 1});  // into the other slots; nobody waits for them any more
  experts_->Advance();
  const std::size_t bytes = experts_->loads().layouts()[1].SlotBytes();
  const FetchedExperts fetched = {{{1, 3}, std::vector<std::byte>(bytes, std::byte{77})}};
  ASSERT_TRUE(experts_->Hold(1, fetched_one, fetched).ok());
  EXPECT_EQ(experts_->held().Find({1, 3})->weights().gate.data[0], std::byte{77});
}

TEST_F(OffloadedHoldingTest, AReleasedExpertIsEvictedOnlyWhenNobodyUsesItAnyMore) {
  const std::uint32_t held[] = {0, 1, 2};
  ASSERT_TRUE(experts_->Hold(1, held).ok());
  {
    const auto use = experts_->held().Find({1, 0});
    EXPECT_FALSE(experts_->Release({1, 0}));
    EXPECT_FALSE(experts_->held().Find({1, 0}));
    Ask(0, {0, 1, 2, 3});
    TakeAll(4);
    EXPECT_EQ(use->weights().gate.data[0], std::byte{16});
  }
  EXPECT_TRUE(experts_->Release({1, 0}));
  Ask(0, {0, 1, 2, 3});
  TakeAll(4);
  EXPECT_EQ(experts_->held().count(), 2u);
  ASSERT_TRUE(experts_->Hold(1, std::span(held).first(1)).ok());
  EXPECT_TRUE(experts_->held().Find({1, 0}));
}

TEST_F(OffloadedHoldingTest, MoreThanThereAreSlotsCannotBeHeld) {
  const std::uint32_t most[] = {0, 1, 2};
  ASSERT_TRUE(experts_->Hold(0, most).ok());
  EXPECT_EQ(experts_->Hold(1, std::span(most).first(1)).code(), Code::kResourceExhausted);
  EXPECT_EQ(experts_->held().count(), 3u);
  Ask(1, {0, 1});  // one after the other, in the slot that is left
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(0, 1));
}

TEST_F(OffloadedHoldingTest, AnExpertThatCannotBeReadIsNotHeld) {
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kError; });
  const std::uint32_t one[] = {3};
  EXPECT_FALSE(experts_->Hold(0, one).ok());
  EXPECT_EQ(experts_->held().count(), 0u);
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kNone; });
  EXPECT_TRUE(experts_->Hold(0, one).ok());
}
}  // namespace
}  // namespace troupe
