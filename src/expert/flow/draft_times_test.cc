#include "expert/flow/draft_times.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr DraftKind kModel{.source = 5, .evidence = 8};

TEST(DraftTimes, WhatWasNotMeasuredCostsNothing) {
  const DraftCost cost = DraftTimes().Cost(100, 10);
  EXPECT_EQ(cost.a_token, 0);
  EXPECT_EQ(cost.catch_up, 0);
}

TEST(DraftTimes, FollowsWhatATokenTakes) {
  DraftTimes times;
  times.NoteDraft(4, 0.4);
  EXPECT_DOUBLE_EQ(times.Cost(0, 10).a_token, 0.1);
  for (int i = 0; i < 50; ++i) times.NoteDraft(2, 0.6);
  EXPECT_NEAR(times.Cost(0, 10).a_token, 0.3, 1e-4);
  times.NoteDraft(0, 5);  // it had no idea
  EXPECT_NEAR(times.Cost(0, 10).a_token, 0.3, 1e-4);
}

TEST(DraftTimes, CatchingUpTakesTheMoreTheMoreIsBehind) {
  DraftTimes times;
  times.NoteRead(100, 1);
  times.NoteRead(200, 2);
  EXPECT_EQ(times.Cost(0, 10).catch_up, 0);
  EXPECT_NEAR(times.Cost(200, 10).catch_up, 2, 0.1);
  EXPECT_GT(times.Cost(400, 10).catch_up, 3);
}

class WeighedDraft : public testing::Test {
 protected:
  // Passes take a second, and a tenth more for each row beside the first; the model is right.
  WeighedDraft() {
    for (const std::uint32_t rows : {1u, 2u, 4u, 8u, 16u}) {
      meter_.PassEnded(rows, 0, 1 + 0.1 * (rows - 1));
    }
    for (int i = 0; i < 20; ++i) governor_.OnPass({.decode_rows = 1, .seconds = 1}, speed());
    for (int check = 0; check < 2; ++check) {  // the first one is not believed
      governor_.OnPass({.decode_rows = 1, .guessed = 15, .right = 15, .seconds = 2.5}, speed());
    }
    for (int i = 0; i < 40; ++i) governor_.Learn({.kind = kModel, .drafted = 8, .right = 8});
  }
  const RowSpeed& speed() const { return meter_.speed(); }
  DraftLength Weigh(const DraftCost& cost) const {
    return governor_.Weigh(kModel, 16, speed(), {.rows = 1, .tokens = 1}, cost);
  }

  DraftGovernor governor_;
  RowSpeedMeter meter_;
};

TEST_F(WeighedDraft, IsLongWhereGuessingTakesLittle) {
  const DraftLength free = Weigh({});
  EXPECT_GT(free.tokens, 8u);
  const DraftLength cheap = Weigh({.a_token = 0.05});
  EXPECT_GT(cheap.tokens, 8u);
  EXPECT_LT(cheap.rate, free.rate);
  EXPECT_NEAR(cheap.seconds, 0.05 * cheap.tokens, 1e-9);
}

// As slow as the model that it guesses for: guesses and checks take more than they save.
TEST_F(WeighedDraft, IsNoneWhereGuessingTakesAsLongAsAPass) {
  EXPECT_EQ(Weigh({.a_token = 1}).tokens, 0u);
}

TEST_F(WeighedDraft, IsNoneWhereCatchingUpIsForTooFewTokens) {
  EXPECT_EQ(Weigh({.a_token = 0.05, .catch_up = 60, .text_left = 20}).tokens, 0u);
  EXPECT_GT(Weigh({.a_token = 0.05, .catch_up = 60, .text_left = 2000}).tokens, 8u);
}

// Neighbours in a batch wait for the draft as well.
TEST_F(WeighedDraft, CountsTheTimeThatOthersWait) {
  const DraftCost cost{.a_token = 0.2};
  const DraftLength alone = Weigh(cost);
  const DraftLength beside =
      governor_.Weigh(kModel, 8, speed(), {.rows = 8, .tokens = 8}, {.a_token = 0.6});
  EXPECT_GT(alone.tokens, 0u);
  EXPECT_EQ(beside.tokens, 0u);
}

// A drafter that is never right, and whose drafts take as long as a pass each: what finding out
// costs stays small, and it is tried again and again all the same.
TEST(DraftTrials, CostLittleAndDoNotEnd) {
  DraftGovernor governor;
  RowSpeedMeter meter;
  DraftTimes times;
  double seconds = 0;
  int tries = 0, late_tries = 0;
  constexpr int kPasses = 4000;
  for (int pass = 0; pass < kPasses; ++pass) {
    PassSoFar so_far{.rows = 1, .tokens = 1};
    const DraftCost cost = times.Cost(0, 1000);
    const DraftLength offer = governor.Weigh(kModel, 64, meter.speed(), so_far, cost);
    const bool tried = offer.tokens == 0 && governor.MayTry(4 * cost.a_token);
    const std::uint32_t drafted = tried ? 4 : offer.tokens;
    const double drafting = 0.25 * drafted;
    if (drafted > 0) times.NoteDraft(drafted, drafting);
    if (drafted > 0) governor.Learn({.kind = kModel, .drafted = drafted, .checked = !tried});
    tries += tried, late_tries += tried && pass > kPasses / 2;
    const double takes = 1 + 0.3 * offer.tokens;
    governor.OnPass(
        {.decode_rows = 1, .guessed = offer.tokens, .seconds = takes, .drafting_seconds = drafting},
        meter.speed());
    meter.PassEnded(1 + offer.tokens, 0, takes);
    seconds += takes + drafting;
  }
  EXPECT_LT(seconds, 1.015 * kPasses);
  EXPECT_GT(late_tries, 3) << tries;
}

}  // namespace
}  // namespace troupe
