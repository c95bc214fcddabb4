#include "expert/card/card_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr auto kProcessor = Answerer::kProcessor, kCard = Answerer::kCard,
               kCopied = Answerer::kCopied;

// An expert takes so long on each, however many rows it has.
CardSpeeds Even(double card, double processor, double copy) {
  CardSpeeds speeds;
  speeds.NoteCard(1, 1, 0);
  for (const std::uint32_t rows : {1u, 64u}) {
    speeds.NoteCard(1, rows, card);
    speeds.NoteProcessor(1, rows, processor);
  }
  speeds.NoteCopy(copy);
  return speeds;
}

CardAsk InCard(std::uint32_t rows = 1) { return {.rows = rows, .in_card = true}; }
CardAsk InMemory(std::uint32_t rows = 1) { return {.rows = rows, .may_copy = true}; }
CardAsk OnDisk(std::uint32_t rows = 1) { return {.rows = rows, .away_seconds = 100}; }

TEST(CardLanesTest, BeforeAnythingIsMeasuredTheCardAnswersWhatItHas) {
  const CardAsk asks[] = {InMemory(), InCard(), OnDisk(), InCard()};
  EXPECT_THAT(SplitLanes(asks, CardSpeeds()).answers,
              ElementsAre(kProcessor, kCard, kProcessor, kCard));
}

TEST(CardLanesTest, ACardAsQuickAsTheProcessorGetsHalf) {
  const CardAsk asks[] = {InCard(), InCard(), InCard(), InCard()};
  const CardSplit split = SplitLanes(asks, Even(1, 1, 100));
  EXPECT_THAT(split.answers, ElementsAre(kCard, kCard, kProcessor, kProcessor));
  EXPECT_EQ(split.card_seconds, 2);
  EXPECT_EQ(split.processor_seconds, 2);
}

TEST(CardLanesTest, ACardThatCostsMoreThanAllTheRestGetsNothing) {
  const CardAsk asks[] = {InCard(), InCard(), InCard(), InCard()};
  EXPECT_THAT(SplitLanes(asks, Even(4.5, 1, 100)).answers, Each(kProcessor));
}

TEST(CardLanesTest, AloneAnExpertGoesToTheQuickerOne) {
  const CardAsk alone[] = {InCard()};
  EXPECT_THAT(SplitLanes(alone, Even(1, 2, 100)).answers, ElementsAre(kCard));
  EXPECT_THAT(SplitLanes(alone, Even(2, 1, 100)).answers, ElementsAre(kProcessor));
}

TEST(CardLanesTest, WhatTheProcessorWouldHaveToReadIsTheCardsHoweverSlow) {
  const CardAsk asks[] = {{.rows = 1, .in_card = true, .away_seconds = 100}};
  EXPECT_THAT(SplitLanes(asks, Even(20, 1, 100)).answers, ElementsAre(kCard));
}

TEST(CardLanesTest, ACopyOnTheSpotIsMadeWhereItEndsSooner) {
  const CardAsk asks[] = {InMemory(), InMemory(), InMemory(), InMemory()};
  EXPECT_THAT(SplitLanes(asks, Even(0.5, 1, 1.5)).answers,
              ElementsAre(kCopied, kProcessor, kProcessor, kProcessor));
  EXPECT_THAT(SplitLanes(asks, Even(0.5, 1, 5)).answers, Each(kProcessor));
}

TEST(CardLanesTest, TheCardTakesWhatItHasBeforeItCopies) {
  const CardAsk asks[] = {InMemory(9), InCard(1), InCard(3)};
  EXPECT_THAT(SplitLanes(asks, Even(1, 1.5, 0.1)).answers, ElementsAre(kProcessor, kCard, kCard));
}

TEST(CardLanesTest, TheCardTakesWhatMostRowsAskedFor) {
  const CardAsk asks[] = {InCard(1), InCard(3)};
  EXPECT_THAT(SplitLanes(asks, Even(1, 1, 100)).answers, ElementsAre(kProcessor, kCard));
}

TEST(CardLanesTest, LanesEndWithinOneExpertOfEachOther) {
  Rng rng(TestSeed());
  for (int round = 0; round < 2'000; ++round) {
    const double card = 0.1 + rng.Uniform(), processor = 0.1 + rng.Uniform(), copy = rng.Uniform();
    const CardSpeeds speeds = Even(card, processor, copy);
    std::vector<CardAsk> asks;
    for (std::uint64_t i = 0, n = 1 + rng.Below(16); i < n; ++i) {
      asks.push_back(rng.Below(2) == 0 ? InCard() : InMemory());
    }
    const CardSplit split = SplitLanes(asks, speeds);
    const double longest = std::max(card + copy, processor);
    EXPECT_LE(std::abs(split.card_seconds - split.processor_seconds), longest + 1e-9);
    const double alone = static_cast<double>(asks.size()) * processor;
    EXPECT_LE(std::max(split.card_seconds, split.processor_seconds), alone + 1e-9)
        << "never slower than the processor alone";
  }
}

// As a prompt's: from a card four times as slow as the processor to one four times as quick.
TEST(CardLanesTest, LanesEndWithinATenthWhereALayerAsksForMany) {
  Rng rng(TestSeed());
  for (const double ratio : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    for (int round = 0; round < 200; ++round) {
      CardSpeeds speeds;
      speeds.NoteCard(1, 1, 0);
      // Beside a part that rows do not change, each row takes time.
      for (const std::uint32_t rows : {1u, 4u, 16u}) {
        speeds.NoteCard(1, rows, ratio * (1 + 0.1 * rows));
        speeds.NoteProcessor(1, rows, 1 + 0.1 * rows);
      }
      std::vector<CardAsk> asks;
      for (int i = 0; i < 96; ++i)
        asks.push_back(InCard(1 + static_cast<std::uint32_t>(rng.Below(16))));
      const CardSplit split = SplitLanes(asks, speeds);
      const double longer = std::max(split.card_seconds, split.processor_seconds);
      EXPECT_LE(std::abs(split.card_seconds - split.processor_seconds), 0.1 * longer) << ratio;
    }
  }
}

TEST(CardLanesTest, ACardThatGetsNothingIsTriedNowAndThen) {
  CardLanes lanes;
  lanes.speeds() = Even(50, 1, 1);
  const CardAsk asks[] = {InMemory(), InCard(), InCard()};
  std::size_t tried = 0;
  for (int layer = 0; layer < 1'000; ++layer) {
    const CardSplit split = lanes.Split(asks);
    tried += static_cast<std::size_t>(std::ranges::count(split.answers, kCard));
  }
  EXPECT_EQ(tried, 3u);
  EXPECT_EQ(lanes.trials(), 3u);
}

TEST(CardLanesTest, CopiesAreWorthNothingToACardThatGetsNothing) {
  CardLanes lanes;
  EXPECT_TRUE(lanes.IsWorthCopies(1)) << "nothing is measured";
  lanes.speeds() = Even(4, 1, 1);
  EXPECT_TRUE(lanes.IsWorthCopies(4));
  EXPECT_FALSE(lanes.IsWorthCopies(3));
}

}  // namespace
}  // namespace troupe
