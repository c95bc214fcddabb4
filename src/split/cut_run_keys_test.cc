// Longer answers behind a cut, between two toy machines (cut_toy_for_test.h): keys and values cross
// beside the rows, and the cloud goes on by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "split/cut_toy_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST_F(CutToyTest, GivesLongerAnswersOfTheModelAloneWhateverHappensToTheLink) {
  const Schedules seen = RunSchedules(600, /*most_tokens=*/12, /*most_prompt=*/100);
  EXPECT_GT(seen.went_on, 100u);
  EXPECT_GT(seen.otherwise, 50u);
}

TEST_F(CutToyTest, KeysAndValuesOfAllWholeTilesButTheLastTokenCrossBesideTheRows) {
  Rng rng(TestSeed());
  Request request = Asked(rng, 5);
  request.prompt = std::vector<TokenId>(80, 5);
  request.begun.clear();
  request.max_tokens = 5;
  CutToy world(*tokenizer_, 1, /*faults=*/false);
  world.chunk_ = 20;
  EXPECT_EQ(Run(world, request).first.tokens,
            ToyAnswer(*tokenizer_, world.clock(), request).tokens);
  const CutCounts& counts = world.counts();
  EXPECT_EQ(counts.went_on, 1u);
  EXPECT_EQ(counts.rows, 64u);
  const std::size_t keys = kToyCut * 64 * kToyWidth * sizeof(float);
  EXPECT_GT(counts.keys_bytes, keys);
  EXPECT_LT(counts.keys_bytes, 2 * keys);
  EXPECT_THAT(world.report(), testing::HasSubstr("a prompt of 64 tokens, cut before layer 2, 32"));
}

TEST_F(CutToyTest, AMessageThatFoundNoRoomGoesBeforeNewOnesOnceItIsDue) {
  Rng rng(TestSeed());
  Request request = Asked(rng, 3);
  request.prompt = std::vector<TokenId>(272, 5);
  request.begun.clear();
  request.max_tokens = 3;
  CutToy world(*tokenizer_, 1, /*faults=*/false);
  world.chunk_ = 256;
  world.most_positions_ = 16;
  world.on_link_ = 10 * kToyTick;
  world.refuses_first_ = true;  // the rows: 32 messages with keys and values wait behind them
  const Answer answer = Run(world, request).first;
  EXPECT_EQ(answer.tokens, ToyAnswer(*tokenizer_, world.clock(), request).tokens);
  EXPECT_EQ(world.counts().went_on, 1u);
  EXPECT_EQ(world.refused_, 1u);
  EXPECT_GT(world.overtook(), 4u);
  EXPECT_LT(world.overtook(), 20u) << "50 ms until it is due, and 10 on the link for each";
}

TEST_F(CutToyTest, TheCutIsOverWithTheFirstTokenAndTheAnswerIsNot) {
  Rng rng(TestSeed());
  Request request = Asked(rng, 40);
  request.prompt = std::vector<TokenId>(33, 7);
  CutToy world(*tokenizer_, 1, /*faults=*/false);
  const auto [answer, took] = Run(world, request);
  EXPECT_EQ(answer.tokens, ToyAnswer(*tokenizer_, world.clock(), request).tokens);
  EXPECT_EQ(world.cut_ok(), 1u);
  EXPECT_GT(world.counts().end.seconds(), 0);
}

}  // namespace
}  // namespace troupe
