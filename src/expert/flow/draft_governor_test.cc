#include "expert/flow/draft_governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr DraftKind kSure = {.source = 1, .evidence = 64};

// A machine on which a pass takes a second and `row` more for each row beside the first, and a text
// in which a guess is right by chance.
class Machine {
 public:
  Machine(double row, double noise) : row_(row), noise_(noise) {}

  // One pass; gives the tokens that came of it.
  std::uint32_t Pass(DraftGovernor& governor, DraftKind kind, double odds, std::size_t most = 64) {
    PassSoFar pass{.rows = 1, .tokens = 1};
    const std::uint32_t drafted = governor.Length(kind, most, meter_.speed(), pass);
    std::uint32_t right = 0;
    while (right < drafted && rng_.Uniform() < odds) ++right;
    const double takes = 1 + row_ * drafted;
    const double seconds = takes * (1 + noise_ * (2 * rng_.Uniform() - 1));
    governor.Learn({.kind = kind, .drafted = drafted, .right = right});
    governor.OnPass({.decode_rows = 1, .guessed = drafted, .right = right, .seconds = seconds},
                    meter_.speed());
    meter_.PassEnded(1 + drafted, 0, seconds);
    seconds_ += takes;
    tokens_ += 1 + right;
    drafted_ += drafted;
    return 1 + right;
  }
  // Against a second a token, and without the noise.
  double Speed() const { return tokens_ / seconds_; }
  std::uint64_t drafted() const { return drafted_; }

 private:
  double row_, noise_;
  Rng rng_{TestSeed()};
  RowSpeedMeter meter_;
  double seconds_ = 0, tokens_ = 0;
  std::uint64_t drafted_ = 0;
};

TEST(DraftGovernor, DraftsNothingBeforeAPassWasMeasured) {
  DraftGovernor governor;
  PassSoFar pass{.rows = 1, .tokens = 1};
  EXPECT_EQ(governor.Length(kSure, 64, {}, pass), 0u);
  EXPECT_EQ(pass.rows, 1);
}

TEST(DraftGovernor, DraftsFarWhereGuessesAreRight) {
  for (const double row : {0.05, 0.3, 0.6}) {
    DraftGovernor governor;
    Machine machine(row, 0.1);
    for (int pass = 0; pass < 400; ++pass) machine.Pass(governor, kSure, 0.98);
    double best = 1;  // of all fixed lengths
    double tokens = 1;
    for (int length = 1; length <= 64; ++length) {
      tokens += std::pow(0.98, length);
      best = std::max(best, tokens / (1 + row * length));
    }
    EXPECT_GT(machine.Speed() - 1, 0.7 * (best - 1)) << row;
    EXPECT_GT(governor.saved_seconds(), 0) << row;
  }
}

// Whatever it costs and however sure the drafter is: at most two hundredths.
// What a check of two rows touches for the first time makes it slow, and no further one.
TEST(DraftGovernor, AFirstCheckThatWasSlowIsNotBelieved) {
  DraftGovernor governor;
  RowSpeedMeter meter;
  const auto pass = [&](std::uint32_t guessed, double seconds) {
    governor.OnPass({.decode_rows = 1, .guessed = guessed, .right = guessed, .seconds = seconds},
                    meter.speed());
    meter.PassEnded(1 + guessed, 0, seconds);
  };
  const auto length = [&] {
    PassSoFar so_far{.rows = 1, .tokens = 1};
    return governor.Length(kSure, 1, meter.speed(), so_far);
  };
  for (int i = 0; i < 5; ++i) pass(0, 1);
  pass(1, 2.6);
  EXPECT_EQ(length(), 1u);
  pass(1, 1.35);
  EXPECT_EQ(length(), 1u);
}

TEST(DraftGovernor, WhatDraftsHaveGainedIsNotSpentOnTryingThem) {
  DraftGovernor governor;
  Machine machine(0.1, 0);
  for (int pass = 0; pass < 100; ++pass) machine.Pass(governor, kSure, 1);
  EXPECT_GT(governor.saved_seconds(), 100);
  RowSpeedMeter meter;
  int tried = 0;
  for (int pass = 0; pass < 500; ++pass) {
    const double drafting = governor.MayTry(0.5) ? 0.5 : 0;
    tried += drafting > 0;
    governor.NoteTried(drafting);
    governor.OnPass({.decode_rows = 1, .seconds = 1, .drafting_seconds = drafting}, meter.speed());
    meter.PassEnded(1, 0, 1);
  }
  EXPECT_GE(tried, 5);
  EXPECT_LE(tried, 30);
}

TEST(DraftGovernor, AnAdversaryCostsLittle) {
  for (const double row : {0.02, 0.3, 1.0, 3.0}) {
    for (const double noise : {0.0, 0.3}) {
      DraftGovernor governor;
      Machine machine(row, noise);
      for (int pass = 0; pass < 300; ++pass) machine.Pass(governor, kSure, 0);
      // Of 480 runs with other seeds the worst had 0.974, at this noise.
      EXPECT_GT(machine.Speed(), noise > 0 ? 0.97 : 0.98) << row << " " << noise;
    }
  }
}

TEST(DraftGovernor, LosesLittleWhereATextTurns) {
  DraftGovernor governor;
  Machine machine(0.3, 0.1);
  for (int round = 0; round < 10; ++round) {
    for (int pass = 0; pass < 10; ++pass) machine.Pass(governor, kSure, 0.97);
    for (int pass = 0; pass < 60; ++pass) machine.Pass(governor, kSure, 0.02);
  }
  EXPECT_GT(machine.Speed(), 0.98);
}

TEST(DraftGovernor, LeavesDraftsThatAreRightTooSeldomForWhatTheyCost) {
  DraftGovernor governor;
  Machine machine(0.7, 0.1);
  for (int pass = 0; pass < 50; ++pass) machine.Pass(governor, kSure, 0.6);
  const std::uint64_t before = machine.drafted();
  for (int pass = 0; pass < 500; ++pass) machine.Pass(governor, kSure, 0.6);
  EXPECT_LT(machine.drafted() - before, 80u);
  EXPECT_GT(machine.Speed(), 0.98);
}

// Behind a disk: wrong guesses drive experts out that the passes after them need. Beside those
// passes drafts seem to pay, and all of it is slower than without drafts.
TEST(DraftGovernor, LeavesDraftsThatMakeThePassesBetweenThemSlow) {
  Rng rng(TestSeed());
  DraftGovernor governor;
  RowSpeedMeter meter;
  double seconds = 0, tokens = 0, spoiled = 0;  // of the cache
  for (int i = 0; i < 3000; ++i) {
    PassSoFar so_far{.rows = 1, .tokens = 1};
    const std::uint32_t guessed = governor.Length(kSure, 1, meter.speed(), so_far);
    const std::uint32_t right = guessed > 0 && rng.Uniform() < 0.6;
    const double takes = (1 + 0.3 * guessed) * (1 + spoiled);
    spoiled += guessed > 0 ? 0.2 * (0.8 - spoiled) : -0.2 * spoiled;
    governor.Learn({.kind = kSure, .drafted = guessed, .right = right});
    governor.OnPass({.decode_rows = 1, .guessed = guessed, .right = right, .seconds = takes},
                    meter.speed());
    meter.PassEnded(1 + guessed, 0, takes);
    seconds += takes, tokens += 1 + right;
  }
  EXPECT_GT(tokens / seconds, 0.97);
}

// A truthful machine: drafts save what they are thought to save, some 1.3 times.
TEST(DraftGovernor, PassesWithoutDraftsShowWhatDraftsSave) {
  DraftGovernor governor;
  Machine machine(/*row=*/0.3, /*noise=*/0);
  for (int i = 0; i < 400; ++i) machine.Pass(governor, kSure, /*odds=*/0.8, /*most=*/1);
  EXPECT_GE(governor.compared().passes, DraftTurnsOptions().rest);
  EXPECT_LT(std::abs(governor.compared().more_saved_seconds), 0.2 * governor.saved_seconds());
  EXPECT_NE(governor.compared().more_saved_seconds, 0);
}

TEST(DraftGovernor, LearnsFromDraftsThatAreOnlyCompared) {
  DraftGovernor governor;
  const DraftKind weak{.source = 1, .evidence = 1};
  const double before = governor.Expected(weak, 4);
  for (int i = 0; i < 20; ++i) {
    governor.Learn({.kind = weak, .drafted = 4, .right = 4, .checked = false});
  }
  EXPECT_GT(governor.Expected(weak, 4), 3.5);
  EXPECT_LT(before, 1);
  const DraftKind other{.source = 2, .evidence = 1};
  EXPECT_EQ(governor.Expected(other, 4), before) << "each source and level by itself";
}

// A draft that was wrong and cost much keeps others back, until some that were compared are right.
TEST(DraftGovernor, TriesAgainOnceComparedDraftsAreRight) {
  DraftGovernor governor;
  RowSpeedMeter meter;
  const auto pass = [&](std::uint32_t guessed, double seconds) {
    governor.OnPass({.decode_rows = 1, .guessed = guessed, .right = 0, .seconds = seconds},
                    meter.speed());
    meter.PassEnded(1 + guessed, 0, seconds);
  };
  const auto length = [&] {
    PassSoFar so_far{.rows = 1, .tokens = 1};
    return governor.Length(kSure, 8, meter.speed(), so_far);
  };
  for (int i = 0; i < 5; ++i) pass(0, 1);
  ASSERT_GT(length(), 0u);
  pass(2, 2.2);
  ASSERT_EQ(length(), 0u);
  for (int i = 0; i < 6; ++i) {
    pass(0, 1);
    governor.Learn({.kind = kSure, .drafted = 8, .right = 8, .checked = false});
  }
  EXPECT_GT(length(), 0u);
}

TEST(DraftGovernor, ExpectsOfALongerDraftMoreButNeverMoreThanItHas) {
  DraftGovernor governor;
  double before = 0;
  for (std::size_t tokens = 1; tokens < 64; ++tokens) {
    const double expected = governor.Expected(kSure, tokens);
    EXPECT_GT(expected, before);
    EXPECT_LT(expected, static_cast<double>(tokens));
    before = expected;
  }
}

// The second of two answers pays for its rows on top of the first one's.
TEST(DraftGovernor, CountsWhatIsInThePass) {
  DraftGovernor governor;
  Machine machine(0.2, 0);
  for (int pass = 0; pass < 100; ++pass) machine.Pass(governor, kSure, 0.95);
  RowSpeedMeter meter;
  for (int i = 0; i < 40; ++i) {
    for (std::uint32_t rows = 1; rows <= 64; ++rows) meter.PassEnded(rows, 0, 1 + 0.2 * (rows - 1));
  }
  PassSoFar pass{.rows = 2, .tokens = 2};
  const std::uint32_t first = governor.Length(kSure, 16, meter.speed(), pass);
  ASSERT_GT(first, 0u);
  EXPECT_EQ(pass.rows, 2.0 + first);
  EXPECT_GT(pass.tokens, 2.0);
}

}  // namespace
}  // namespace troupe
