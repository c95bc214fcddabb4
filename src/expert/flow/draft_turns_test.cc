#include "expert/flow/draft_turns.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr DraftTurnsOptions kFour = {
    .first_stretch = 4, .longest_stretch = 16, .rest = 2, .no_doubt = 1.8};

// A pass with one guess that is right every other time, thought to save what it does.
class Passes {
 public:
  explicit Passes(DraftTurns& turns) : turns_(turns) {}

  double With(double seconds, double saved, std::uint32_t rows = 1) {
    return turns_.OnPass(
        {.rows = rows, .guessed = 1, .right = ++passes_ % 2, .seconds = seconds, .saved = saved});
  }
  double Without(double seconds, std::uint32_t rows = 1) {
    return turns_.OnPass({.rows = rows, .seconds = seconds});
  }

 private:
  DraftTurns& turns_;
  std::uint32_t passes_ = 0;
};

TEST(DraftTurns, BehindSomeChecksPassesRestFromDrafts) {
  DraftTurns turns(kFour);
  Passes passes(turns);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(turns.resting());
    EXPECT_EQ(passes.With(1, 0.2), 0);
  }
  EXPECT_TRUE(turns.resting());
  EXPECT_EQ(passes.Without(1), 0);
  EXPECT_TRUE(turns.resting());
  passes.Without(1);
  EXPECT_FALSE(turns.resting());
}

TEST(DraftTurns, TheFirstPassesOfARestMayBeLeftOut) {
  DraftTurnsOptions options = kFour;
  options.settle = 3;
  DraftTurns turns(options);
  Passes passes(turns);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 4; ++i) passes.With(2, 0);  // 6 tokens in 8 s
    for (int i = 0; i < 3; ++i) EXPECT_EQ(passes.Without(9), 0);
    passes.Without(1);
    EXPECT_DOUBLE_EQ(passes.Without(1), 6 * 1.0 - 8) << "nothing is known of the slow ones";
    EXPECT_FALSE(turns.resting());
  }
}

TEST(DraftTurns, TellWhatDraftsHaveLostThatWereThoughtToSave) {
  DraftTurns turns(kFour);
  Passes passes(turns);
  for (int i = 0; i < 4; ++i) passes.With(2, 0.1);  // 6 tokens in 8 s
  passes.Without(1);
  EXPECT_DOUBLE_EQ(passes.Without(1), 6 * 1.0 - 8 - 4 * 0.1);
}

TEST(DraftTurns, TellWhatDraftsHaveSavedBeyondWhatWasThought) {
  DraftTurns turns(kFour);
  Passes passes(turns);
  for (int i = 0; i < 4; ++i) passes.With(1, 0);
  passes.Without(1);
  EXPECT_DOUBLE_EQ(passes.Without(1), 6 * 1.0 - 4);
}

TEST(DraftTurns, LeaveDraftsThatPayAloneForLongerEachTimeAndLookAgainOnceTheyLose) {
  DraftTurns turns(kFour);
  Passes passes(turns);
  const auto checks_until_rest = [&](double seconds) {
    int checks = 0;
    for (; !turns.resting(); ++checks) passes.With(seconds, 0);
    while (turns.resting()) passes.Without(1);
    return checks;
  };
  EXPECT_EQ(checks_until_rest(1), 4);
  EXPECT_EQ(checks_until_rest(1), 8);
  EXPECT_EQ(checks_until_rest(1), 16);
  EXPECT_EQ(checks_until_rest(1), 16);
  EXPECT_EQ(checks_until_rest(2), 16) << "that they lose shows behind it";
  EXPECT_EQ(checks_until_rest(2), 4);
}

TEST(DraftTurns, WhatIsThoughtIsNoReasonNotToRest) {
  DraftTurns turns(kFour);
  Passes passes(turns);
  for (int i = 0; i < 4; ++i) passes.With(1, 9);
  EXPECT_TRUE(turns.resting());
}

TEST(DraftTurns, WhereRestsLeaveNoDoubtTheNextOnesAreLeftOutUpToTheLongestStretch) {
  DraftTurns turns(kFour);
  Passes passes(turns);
  for (int i = 0; i < 4; ++i) passes.With(1, 0);  // 6 tokens in 4 s
  for (int i = 0; i < 2; ++i) passes.Without(2);
  for (int i = 0; i < 8; ++i) {
    passes.With(1, 0);
    EXPECT_FALSE(turns.resting()) << "12 tokens in 8 s, and 24 s without";
  }
  for (int i = 0; i < 15; ++i) {
    passes.With(1, 0);
    EXPECT_FALSE(turns.resting());
  }
  passes.With(1, 0);
  EXPECT_TRUE(turns.resting());
}

TEST(DraftTurns, DoNotRestWhereDraftsRideSeldom) {
  DraftTurns turns(kFour);
  Passes passes(turns);
  for (int i = 0; i < 100; ++i) {
    for (int pass = 0; pass < 16; ++pass) passes.Without(1);
    passes.With(1, 0);
    EXPECT_FALSE(turns.resting());
  }
}

// A token of four answers takes less time than one of a single answer.
TEST(DraftTurns, CompareOnlyPassesOfAsManyAnswers) {
  DraftTurns turns(kFour);
  Passes passes(turns);
  for (int i = 0; i < 3; ++i) passes.With(1, 0);
  for (int i = 0; i < 3; ++i) passes.With(2, 0, 4);
  EXPECT_FALSE(turns.resting());
  passes.With(2, 0, 4);
  EXPECT_TRUE(turns.resting());
  passes.Without(1);
  EXPECT_FALSE(turns.resting()) << "an answer alone, whose stretch begins anew";
}

}  // namespace
}  // namespace troupe
