// Computing with gate and up of an expert whose down is still on its way, over a fake disk. Pieces
// are one matrix each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "runtime/offloaded_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class OffloadedBegun : public OffloadedExpertsTest {
 protected:
  void SetUp() override {
    Open(3);
    reader_->Hold(true);  // one read for each wait
  }

  // The expert that was begun, after a look at its gate and up.
  std::optional<std::uint32_t> TakeBegun() {
    const std::optional<BegunExpert> begun = experts_->TakeBegun();
    if (!begun) return std::nullopt;
    const auto mark = static_cast<std::byte>(16 * layer_ + begun->expert);
    for (const PanelMatrix& m : {begun->weights.gate, begun->weights.up}) {
      EXPECT_TRUE(std::all_of(m.data, m.data + PanelBytes(m.type, m.rows, m.cols),
                              [&](std::byte b) { return b == mark; }));
    }
    return begun->expert;
  }
  std::uint64_t begun() const { return experts_->report().begun_before_down; }
};

TEST_F(OffloadedBegun, AnExpertIsBegunWhenGateAndUpHaveComeAndGivenWhenDownHas) {
  Ask(1, {2});
  EXPECT_THAT(Take(false), IsEmpty());
  EXPECT_EQ(TakeBegun(), 2u);
  EXPECT_EQ(reader_->under_way(), 1u);
  EXPECT_EQ(TakeBegun(), std::nullopt);  // each once, and without waiting for the rest
  EXPECT_EQ(reader_->under_way(), 1u);
  EXPECT_THAT(Take(true), ElementsAre(2));
  EXPECT_EQ(begun(), 1u);
}

TEST_F(OffloadedBegun, WhatIsThereWholeIsTakenFirst) {
  Ask(0, {0});
  EXPECT_THAT(TakeAll(1), ElementsAre(0));
  Ask(0, {0, 1});
  EXPECT_EQ(TakeBegun(), std::nullopt);
  EXPECT_EQ(reader_->under_way(), 3u);  // nothing was waited for
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(0, 1));
  EXPECT_EQ(begun(), 0u);
}

TEST_F(OffloadedBegun, SeveralAreBegunOneAfterTheOther) {
  reader_->Reverse(false);
  Ask(0, {0, 1, 3});
  EXPECT_THAT(Take(false), IsEmpty());
  std::vector<std::uint32_t> given;
  while (given.size() < 3) {
    while (TakeBegun()) {
    }
    for (const std::uint32_t expert : Take(true)) given.push_back(expert);
  }
  EXPECT_THAT(given, UnorderedElementsAre(0, 1, 3));
  EXPECT_EQ(begun(), 3u);
}

TEST_F(OffloadedBegun, NothingIsBegunWhereDownComesFirst) {
  reader_->Reverse(true);
  Ask(0, {1});
  EXPECT_THAT(Take(false), IsEmpty());
  EXPECT_EQ(TakeBegun(), std::nullopt);
  EXPECT_THAT(Take(true), ElementsAre(1));
  EXPECT_EQ(begun(), 0u);
}

TEST_F(OffloadedBegun, OneWhoseDownCannotBeReadFailsTheTakeAndComesWholeTheNextTime) {
  bool broken = true;
  reader_->SetScript([&](const ReadRequest& request) {
    const bool is_down =
        request.offset % OffloadedExperts::SlotBytes(experts_->loads().layouts()).count() == 8192;
    return broken && is_down ? FakeReader::Fault::kError : FakeReader::Fault::kNone;
  });
  Ask(0, {1});
  EXPECT_THAT(Take(false), IsEmpty());
  EXPECT_EQ(TakeBegun(), 1u);
  EXPECT_FALSE(experts_->Take(true).ok());
  broken = false;
  Ask(0, {1});
  EXPECT_THAT(Take(false), IsEmpty());
  EXPECT_EQ(TakeBegun(), 1u);  // anew
  EXPECT_THAT(Take(true), ElementsAre(1));
  EXPECT_EQ(begun(), 2u);
}

}  // namespace
}  // namespace troupe
