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

TEST_F(CutToyTest, MessagesThatFindNoRoomAreSentAgainAndTheCutGoesOn) {
  Rng rng(TestSeed());
  for (const std::size_t tokens : {1, 3}) {
    CutToy world(*tokenizer_, 1, /*faults=*/false);
    world.no_room_until_ = 3'000 * kToyTick;
    Request request = Asked(rng, tokens);
    request.prompt = std::vector<TokenId>(64, 5);
    const auto [answer, took] = Run(world, request);
    EXPECT_EQ(answer.tokens, ToyAnswer(*tokenizer_, world.clock(), request).tokens);
    EXPECT_EQ(world.cut_ok(), 1u);
    EXPECT_EQ(world.cut_not(), 0u);
    EXPECT_GT(world.refused_, 4u);
    EXPECT_LT(world.refused_, 200u) << "it is not asked all the time";
    EXPECT_LT(took, 10'000 * kToyTick);
  }
}

TEST_F(CutToyTest, ACloudWithoutRoomForTenSecondsIsLeft) {
  Rng rng(TestSeed());
  CutToy world(*tokenizer_, 1, /*faults=*/false);
  world.no_room_until_ = 60'000 * kToyTick;
  const Request request = Asked(rng, 1);
  const auto [answer, took] = Run(world, request);
  EXPECT_EQ(answer.tokens, ToyAnswer(*tokenizer_, world.clock(), request).tokens);
  EXPECT_EQ(world.cut_not(), 1u);
  EXPECT_LT(took, 11'000 * kToyTick);
}

TEST_F(CutToyTest, OnlyWhatTheCloudRefusesIsCountedAsRefused) {
  Rng rng(TestSeed());
  const Request request = Asked(rng, 1);
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  const auto counts_of = [&](auto fail) {
    CutToy world(*tokenizer_, 1, /*faults=*/false);
    fail(world);
    EXPECT_EQ(Run(world, request).first.tokens,
              ToyAnswer(*tokenizer_, world.clock(), request).tokens);
    EXPECT_EQ(world.cut_not(), 1u);
    return Counts(world.flow().refusals, world.flow().failures);
  };
  const Counts refused(1, 0), failed(0, 1);
  EXPECT_EQ(counts_of([](CutToy& world) { world.no_room_until_ = 60'000 * kToyTick; }), refused);
  EXPECT_EQ(counts_of([](CutToy& world) { world.cloud_takes_ = 60'000 * kToyTick; }), failed)
      << "rows that are not taken in time";
  for (const Code code : {Code::kResourceExhausted, Code::kFailedPrecondition, Code::kDataLoss}) {
    EXPECT_EQ(counts_of([code](CutToy& world) { world.end_fails_ = Error(code, "no room"); }),
              failed)
        << "at the end: " << static_cast<int>(code);
  }
}

TEST_F(CutToyTest, MessagesThatShareTheLinkMeasureAllOfIt) {
  Rng rng(TestSeed());
  Request request = Asked(rng, 1);
  request.prompt = std::vector<TokenId>(64, 5);
  request.begun.clear();
  request.max_tokens = 1;
  CutToy world(*tokenizer_, 1, /*faults=*/false);
  world.chunk_takes_ = world.cloud_takes_ = kToyTick;
  world.on_link_ = 10 * kToyTick;  // four of eight messages are on their way at a time
  Run(world, request);
  const double carried = static_cast<double>(world.counts().bytes) / 0.08;
  EXPECT_NEAR(world.meter().bytes_a_second(), carried, 0.1 * carried);
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
