#include "expert/prefetch/miss_foresight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

// Guessed in time, sure enough, and not read: the link was busy. Each test takes one thing away.
MissForesight InTime() {
  return {.ahead = 2,
          .odds = 0.8,
          .least_odds = 0.3,
          .lead_seconds = 3e-3,
          .load_seconds = 2e-3,
          .reads_ahead = true,
          .was_absent = true};
}

TEST(MissForesight, OneThatWasGuessedInTimeWaitedForTheLink) {
  EXPECT_EQ(InTime().why(), NotEarlier::kLinkBusy);
  MissForesight under_way = InTime();
  under_way.under_way = true;
  EXPECT_EQ(under_way.why(), NotEarlier::kLinkBusy);
}

TEST(MissForesight, NothingIsKnownWhereNothingIsReadAhead) {
  EXPECT_EQ(MissForesight{}.why(), NotEarlier::kNothingAhead);
}

TEST(MissForesight, OneThatNoGuessNamedWasNotPredictedUnlessTheGovernorHeldBack) {
  MissForesight unnamed = {.reads_ahead = true};
  EXPECT_EQ(unnamed.why(), NotEarlier::kNotPredicted);
  unnamed.held_back = true;
  EXPECT_EQ(unnamed.why(), NotEarlier::kHeldBack);
}

TEST(MissForesight, ALoadThatTakesLongerThanItWasKnownIsTooLate) {
  MissForesight late = InTime();
  late.lead_seconds = 1e-3;
  EXPECT_EQ(late.why(), NotEarlier::kTooLate);
  late.under_way = true;
  EXPECT_EQ(late.why(), NotEarlier::kTooLate);
  MissForesight unmeasured = InTime();
  unmeasured.load_seconds = 0;
  EXPECT_EQ(unmeasured.why(), NotEarlier::kTooLate);
}

TEST(MissForesight, WhatKeptALoadFromBeginningComesBeforeTheTime) {
  MissForesight miss = InTime();
  miss.lead_seconds = 1e-3;
  miss.no_slot = true;
  EXPECT_EQ(miss.why(), NotEarlier::kNoSlot);
  miss.odds = 0.2;
  EXPECT_EQ(miss.why(), NotEarlier::kOddsTooLow);
  miss.held_back = true;
  EXPECT_EQ(miss.why(), NotEarlier::kHeldBack);
  miss.was_absent = false;
  EXPECT_EQ(miss.why(), NotEarlier::kGivenUp);
  miss.taken_back = true;
  EXPECT_EQ(miss.why(), NotEarlier::kTakenBack);
}

TEST(MissForesight, SaysWhichLayerKnewItHowSurelyAndHowLongBefore) {
  EXPECT_EQ(ToString(InTime(), 5),
            "predicted in time, but the link was busy: by layer 3, with odds of 0.80 (asked for: "
            "0.30), 3.00 ms before");
  EXPECT_EQ(ToString(MissForesight{.reads_ahead = true}, 5), "not predicted");
}

}  // namespace
}  // namespace troupe
