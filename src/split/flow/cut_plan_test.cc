#include "split/flow/cut_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <vector>

#include "base/rng.h"
#include "split/flow/cut_flow.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;

CutFacts Facts(double end_row, double cloud_row, double megabits) {
  CutFacts facts{.layers = 8, .before = {2, 4, 6}, .most_rows = 128};
  facts.end_layer_seconds = [=](std::size_t rows) {
    return 0.001 + end_row * static_cast<double>(rows);
  };
  facts.cloud_layer_seconds = [=](std::size_t rows) {
    return 0.0005 + cloud_row * static_cast<double>(rows);
  };
  facts.round_trip_seconds = 0.01;
  facts.bytes_a_row = 4096;
  facts.bytes_a_second = megabits * 1e6 / 8;
  return facts;
}

// The flow on a virtual clock: three lanes, of which each does one thing at a time.
double SimulatedCut(const CutFacts& facts, std::uint32_t layer, std::size_t tokens,
                    std::size_t chunk) {
  CutFlow flow(tokens, chunk, /*most_ahead=*/1000);
  double now = facts.end_wait_seconds, link = facts.round_trip_seconds, last = 0,
         cloud = facts.round_trip_seconds / 2 + facts.cloud_wait_seconds;
  bool is_ready = false;
  CutFlow::Step step = flow.Begin();
  const auto send = [&](const CutFlow::Step& of) {
    for (const CutFlow::Chunk& rows : of.send) {
      link = std::max(link, now) +
             facts.bytes_a_row * static_cast<double>(rows.tokens) / facts.bytes_a_second;
      cloud = std::max(cloud, link + facts.round_trip_seconds / 2) + facts.chunk_wait_seconds +
              facts.cloud_layer_seconds(rows.tokens) * (facts.layers - layer);
      last = cloud + facts.round_trip_seconds / 2;
    }
  };
  while (step.compute) {
    now += facts.end_layer_seconds(step.compute->tokens) * layer;
    if (!is_ready && now >= facts.round_trip_seconds) {
      is_ready = true;
      send(flow.OnCloudReady());
    }
    step = flow.OnComputed();
    send(step);
  }
  if (!is_ready) {
    now = facts.round_trip_seconds;
    send(flow.OnCloudReady());
  }
  return last;
}

TEST(CutPlan, ExpectsWhatTheFlowTakesOnAVirtualClock) {
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    const auto some = [&](double most) {
      return most * static_cast<double>(1 + rng.Below(100)) / 100;
    };
    CutFacts facts = Facts(some(1e-3), some(1e-3), 10 + some(500));
    facts.end_wait_seconds = some(0.2);
    facts.cloud_wait_seconds = some(0.2);
    facts.chunk_wait_seconds = some(0.01);
    const std::size_t tokens = 1 + rng.Below(400), chunk = 1 + rng.Below(128);
    EXPECT_NEAR(CutSeconds(facts, 4, ChunksOf(tokens, chunk)),
                SimulatedCut(facts, 4, tokens, chunk), 1e-9);
  }
}

TEST(CutPlan, IsTheBestOfAllCutsAndChunks) {
  Rng rng(TestSeed());
  for (int round = 0; round < 100; ++round) {
    const auto some = [&](double most) {
      return most * static_cast<double>(1 + rng.Below(100)) / 100;
    };
    CutFacts facts = Facts(some(1e-3), some(1e-3), 10 + some(500));
    facts.cloud_wait_seconds = some(1);
    const std::size_t tokens = 1 + rng.Below(400);
    const CutPlan plan = PlanCut(facts, tokens).value();
    EXPECT_LE(plan.chunk, 128u);
    EXPECT_DOUBLE_EQ(plan.seconds, CutSeconds(facts, plan.layer, ChunksOf(tokens, plan.chunk)));
    double best = 1e9;
    for (const std::uint32_t layer : facts.before) {
      for (std::size_t chunk = 1; chunk <= std::min<std::size_t>(tokens, 128); ++chunk) {
        best = std::min(best, CutSeconds(facts, layer, ChunksOf(tokens, chunk)));
      }
    }
    EXPECT_LE(plan.seconds, 1.1 * best) << "some numbers of chunks are left out";
  }
}

TEST(CutPlan, GivesTheFasterSideMoreLayersAndASlowLinkOneLargeChunk) {
  EXPECT_EQ(PlanCut(Facts(1e-3, 1e-4, 300), 256)->layer, 2u);
  EXPECT_EQ(PlanCut(Facts(1e-4, 1e-3, 300), 256)->layer, 6u);
  const CutPlan overlapping = PlanCut(Facts(4e-4, 4e-4, 300), 256).value();
  EXPECT_LT(overlapping.chunk, 128u);
  const CutPlan whole = PlanCut(Facts(4e-4, 4e-4, 300), 256, /*chunk=*/256).value();
  EXPECT_EQ(whole.chunk, 128u) << "no more than a pass";
  EXPECT_LT(overlapping.seconds, whole.seconds);
}

TEST(CutPlan, ACloudThatOthersWaitForLeavesMoreToTheEnd) {
  CutFacts facts = Facts(4e-4, 2e-4, 300);
  const std::uint32_t idle = PlanCut(facts, 256)->layer;
  facts.cloud_wait_seconds = 1;
  EXPECT_GT(PlanCut(facts, 256)->layer, idle);
}

TEST(CutPlan, KeysAndValuesThatCrossCostTheirLinkForEachOfTheEndsLayers) {
  CutFacts facts = Facts(1e-4, 1e-3, 300);  // the end is the faster one
  const CutPlan without = PlanCut(facts, 256).value();
  facts.bytes_a_row_and_layer = 1024;
  facts.unit = 16;
  const CutPlan fast = PlanCut(facts, 250).value();
  EXPECT_EQ(fast.layer, without.layer) << "a fast link carries them";
  EXPECT_EQ(fast.chunk % 16, 0u);
  EXPECT_GT(CutSeconds(facts, 6, ChunksOf(256, 64)),
            CutSeconds(Facts(1e-4, 1e-3, 300), 6, ChunksOf(256, 64)));
  facts.bytes_a_second = 1e5;
  const CutPlan slow = PlanCut(facts, 250).value();
  EXPECT_EQ(slow.layer, 2u) << "fewer layers, fewer bytes";
  EXPECT_GT(slow.seconds, 250 * (4096 + 2 * 1024) / 1e5);
  EXPECT_EQ(PlanCut(facts, 250, /*chunk=*/20)->chunk, 32u);
  facts.most_rows = 40;
  EXPECT_EQ(PlanCut(facts, 250, /*chunk=*/200)->chunk, 32u) << "whole tiles";
  facts.most_rows = 3;
  EXPECT_EQ(PlanCut(facts, 250)->chunk, 16u) << "one at least";
}

TEST(CutPlan, WithoutACutThereIsNoPlan) {
  CutFacts facts = Facts(1e-4, 1e-4, 300);
  facts.before.clear();
  EXPECT_FALSE(PlanCut(facts, 256));
}

TEST(ChunksOf, AreAllAlikeButTheLast) {
  EXPECT_THAT(ChunksOf(10, 4), ElementsAre(4u, 4u, 2u));
  EXPECT_THAT(ChunksOf(3, 4), ElementsAre(3u));
}

TEST(CutMeter, KnowsWhatChunksTookOnEachSideAndOnTheLink) {
  CutMeter meter;
  EXPECT_DOUBLE_EQ(meter.EndLayerSeconds(10, 0.008, 8), 0.01) << "as a token of the whole takes";
  meter.OnEnd(32, 4, 0.4);
  meter.OnCloud(32, 4, 0.04, 0.2, 1'000'000'000);
  EXPECT_FALSE(meter.measured());
  meter.OnLink(100'000, 0.11, 0.01);
  EXPECT_TRUE(meter.measured());
  EXPECT_DOUBLE_EQ(meter.EndLayerSeconds(32, 0.008, 8), 0.1);
  EXPECT_DOUBLE_EQ(meter.CloudLayerSeconds(32, 0.008, 8), 0.05);
  EXPECT_DOUBLE_EQ(meter.bytes_a_second(), 1e6);
  EXPECT_DOUBLE_EQ(meter.ChunkWaitSeconds(1'000'000'000), 0.01);
  EXPECT_DOUBLE_EQ(meter.ChunkWaitSeconds(3'000'000'000), 0.005) << "nobody has waited since";
  meter.OnLink(1000, 0.005, 0.01);
  EXPECT_GT(meter.bytes_a_second(), 1e6) << "it took no more than the round trip";
}

TEST(PlanCutByLink, RowsAreShortenedOnlyWhereTheLinkMakesItWorthALoss) {
  const std::vector<ShorterRows> shorter = {{.layer = 2, .bytes_a_row = 1100},
                                            {.layer = 4, .bytes_a_row = 200}};
  const CutFacts fast = Facts(0.00005, 0.0001, 10'000), slow = Facts(0.00005, 0.0001, 10);
  const CutPlan at_once = PlanCutByLink(fast, shorter, 256).value();
  EXPECT_EQ(at_once, PlanCut(fast, 256));
  EXPECT_FALSE(at_once.lossy);
  const CutPlan short_rows = PlanCutByLink(slow, shorter, 256).value();
  EXPECT_TRUE(short_rows.lossy);
  EXPECT_EQ(short_rows.layer, 4u) << "whose rows are the shortest";
  EXPECT_LT(1.05 * short_rows.seconds, PlanCut(slow, 256)->seconds);
  EXPECT_EQ(PlanCutByLink(slow, {}, 256), PlanCut(slow, 256));
}

TEST(PlanCutByLink, WhatARowTakesToWriteAndReadCountsBesideItsBytes) {
  const std::vector<ShorterRows> shorter = {
      {.layer = 2, .bytes_a_row = 1100, .code = 0, .encode_seconds = 5e-6, .decode_seconds = 1e-6},
      {.layer = 2,
       .bytes_a_row = 560,
       .code = 1,
       .encode_seconds = 62e-6,
       .decode_seconds = 48e-6}};
  const CutPlan usual = PlanCutByLink(Facts(1e-6, 1e-6, 300), shorter, 256).value();
  EXPECT_TRUE(usual.lossy);
  EXPECT_EQ(usual.code, 0u);
  const CutPlan slow = PlanCutByLink(Facts(1e-6, 1e-6, 5), shorter, 256).value();
  EXPECT_TRUE(slow.lossy);
  EXPECT_EQ(slow.code, 1u);
  const CutPlan alone =
      PlanCutByLink(Facts(1e-6, 1e-6, 300), std::span(shorter).subspan(1), 256).value();
  EXPECT_GT(alone.seconds, usual.seconds);
  ShorterRows slowly = shorter[0];
  slowly.encode_seconds = 1;
  EXPECT_FALSE(PlanCutByLink(Facts(1e-6, 1e-6, 300), {&slowly, 1}, 256)->lossy);
}

// Whatever the machines are like: never slower than exact rows, and lossy for a gain alone.
TEST(PlanCutByLink, ALossAlwaysGainsTime) {
  const std::uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Rng rng(seed);
  int lossy = 0;
  for (int round = 0; round < 300; ++round) {
    const CutFacts facts =
        Facts(0.001 * rng.Uniform(), 0.001 * rng.Uniform(), std::exp(7 * rng.Uniform()));
    const std::vector<ShorterRows> shorter = {{.layer = 4, .bytes_a_row = 4096 * rng.Uniform()}};
    const CutPlan plan = PlanCutByLink(facts, shorter, 200).value();
    const CutPlan exact = PlanCut(facts, 200).value();
    lossy += plan.lossy ? 1 : 0;
    if (plan.lossy) {
      EXPECT_LT(1.05 * plan.seconds, exact.seconds);
    } else {
      EXPECT_EQ(plan, exact);
    }
  }
  EXPECT_GT(lossy, 20);
  EXPECT_LT(lossy, 280);
}

}  // namespace
}  // namespace troupe
