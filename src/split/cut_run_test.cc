// Prompts that are cut between two toy machines (cut_toy_for_test.h): whatever happens to the link,
// answers are those of the model alone.
#include "split/cut_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "split/cut_toy_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST_F(CutToyTest, GivesTheTokenOfTheModelAloneWhateverHappensToTheLink) {
  const Schedules seen = RunSchedules(600, /*most_tokens=*/1, /*most_prompt=*/60);
  EXPECT_GT(seen.cut, 100u);
  EXPECT_GT(seen.otherwise, 50u);
  EXPECT_EQ(seen.went_on, 0u);
}

TEST_F(CutToyTest, TheEndComputesWhileTheLinkSendsAndTheCloudComputes) {
  Rng rng(TestSeed());
  Request request = Asked(rng, 1);
  request.prompt = std::vector<TokenId>(64, 5);
  request.begun.clear();
  request.max_tokens = 1;
  CutToy pipelined(*tokenizer_, 1, /*faults=*/false), whole(*tokenizer_, 1, /*faults=*/false);
  pipelined.chunk_takes_ = pipelined.on_link_ = pipelined.cloud_takes_ = 10 * kToyTick;
  pipelined.chunk_ = 8;
  whole.chunk_takes_ = whole.on_link_ = whole.cloud_takes_ = 80 * kToyTick;
  whole.chunk_ = 64;
  const auto [answer, took] = Run(pipelined, request);
  const auto [same, took_whole] = Run(whole, request);
  EXPECT_EQ(answer.tokens, same.tokens);
  EXPECT_LE(took, 110 * kToyTick) << "eight chunks, and two more of the other lanes";
  EXPECT_GE(took_whole, 240 * kToyTick) << "one lane after the other";
  const CutCounts& counts = pipelined.counts();
  EXPECT_EQ(counts.rows, 64u);
  EXPECT_EQ(counts.lossy_rows, 0u);
  EXPECT_EQ(counts.answered, 1u);
  EXPECT_GT(counts.bytes, 64 * kToyWidth * sizeof(float));
  EXPECT_NEAR(counts.end.seconds(), 0.08, 0.002);
  EXPECT_NEAR(counts.cloud.seconds(), 0.08, 0.005);
  EXPECT_GE(counts.link.seconds(), 0.08);
  EXPECT_THAT(pipelined.report(),
              testing::HasSubstr("a prompt of 64 tokens, cut before layer 2, 8 at a time"));
}

TEST_F(CutToyTest, ACutThatWaitsForTheEndsEngineTakesNoTurnInTheCloudAndIsNotTakenForDead) {
  Rng rng(TestSeed());
  CutToy world(*tokenizer_, 1, /*faults=*/false);
  world.far_at_once_ = false;
  world.chunk_takes_ = 200 * kToyTick;  // more than a cloud may be silent, or without a token
  world.least_stall_ = 150 * kToyTick;
  const Request request = Asked(rng, 1);
  const Answer answer = Run(world, request).first;
  EXPECT_EQ(answer.tokens, ToyAnswer(*tokenizer_, world.clock(), request).tokens);
  EXPECT_GE(world.far_began(), world.chunk_takes_);
  EXPECT_EQ(world.cut_ok(), 1u);
  EXPECT_EQ(world.stalls(), 0u);
}

TEST_F(CutToyTest, ACloudThatLivesAndTakesNoRowsIsLeftAndItsMessagesAreStopped) {
  Rng rng(TestSeed());
  CutToy world(*tokenizer_, 1, /*faults=*/false);
  world.cloud_takes_ = 60'000 * kToyTick;
  const Request request = Asked(rng, 1);
  const auto [answer, took] = Run(world, request);
  EXPECT_EQ(answer.tokens, ToyAnswer(*tokenizer_, world.clock(), request).tokens);
  EXPECT_EQ(world.cut_not(), 1u);
  EXPECT_GT(took, 10'000 * kToyTick);
  EXPECT_LT(took, 11'000 * kToyTick);
  EXPECT_GT(world.stopped(), 0u);
}

TEST_F(CutToyTest, WhatChunksTookIsWhatTheNextPlanGoesBy) {
  Rng rng(TestSeed());
  CutToy world(*tokenizer_, 1, /*faults=*/false);
  EXPECT_FALSE(world.meter().measured());
  Run(world, Asked(rng, 1));
  EXPECT_TRUE(world.meter().measured());
  EXPECT_GT(world.meter().EndLayerSeconds(8, 0, kToyLayers), 0);
}

}  // namespace
}  // namespace troupe
