#include "split/flow/cut_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "split/flow/busy_time.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using Chunk = CutFlow::Chunk;

TEST(CutFlow, ComputesAChunkWhileTheOneBeforeIsOnItsWay) {
  CutFlow flow(10, 4);
  EXPECT_EQ(flow.Begin().compute, (Chunk{.first = 0, .tokens = 4}));
  EXPECT_EQ(flow.OnCloudReady(), CutFlow::Step());
  const CutFlow::Step first = flow.OnComputed();
  EXPECT_EQ(first.compute, (Chunk{.first = 4, .tokens = 4}));
  EXPECT_THAT(first.send, ElementsAre(Chunk{.first = 0, .tokens = 4}));
  const CutFlow::Step second = flow.OnComputed();
  EXPECT_EQ(second.compute, (Chunk{.first = 8, .tokens = 2, .is_last = true}));
  EXPECT_THAT(flow.OnComputed().send, ElementsAre(Chunk{.first = 8, .tokens = 2, .is_last = true}));
  EXPECT_EQ(flow.under_way(), 3u);
}

TEST(CutFlow, SendsNothingBeforeTheCloudIsReady) {
  CutFlow flow(8, 4);
  flow.Begin();
  EXPECT_TRUE(flow.OnComputed().send.empty());
  EXPECT_TRUE(flow.OnComputed().send.empty());
  EXPECT_EQ(flow.OnCloudReady().send.size(), 2u);
}

TEST(CutFlow, EveryTokenIsComputedAndSentOnceInOrderAndFewChunksAreAhead) {
  Rng rng(TestSeed());
  for (int round = 0; round < 300; ++round) {
    const std::size_t tokens = 1 + rng.Below(300), chunk = 1 + rng.Below(100),
                      most = 1 + rng.Below(5);
    CutFlow flow(tokens, chunk, most);
    std::size_t computed = 0, sent = 0, taken = 0, on_link = 0, ahead = 0;
    bool computing = false, is_ready = false;
    const auto take = [&](const CutFlow::Step& step) {
      for (const Chunk& of : step.send) {
        EXPECT_EQ(of.first, sent);
        sent += of.tokens;
        EXPECT_EQ(of.is_last, sent == tokens);
        ++on_link;
      }
      if (step.compute) {
        EXPECT_FALSE(computing);
        EXPECT_EQ(step.compute->first, computed);
        EXPECT_LT(ahead, most);
        computed += step.compute->tokens;
        computing = true;
      }
    };
    take(flow.Begin());
    while (sent < tokens || on_link > 0) {
      switch (rng.Below(3)) {
        case 0:
          if (computing) {
            computing = false;
            ++ahead;
            take(flow.OnComputed());
          }
          break;
        case 1:
          if (on_link > 0) {
            --on_link;
            --ahead;
            ++taken;
            take(flow.OnTaken());
          }
          break;
        default:
          if (!is_ready) take(flow.OnCloudReady());
          is_ready = true;
      }
    }
    EXPECT_EQ(taken, (tokens + chunk - 1) / chunk);
    EXPECT_EQ(flow.computed(), tokens);
  }
}

TEST(BusyTime, CountsOnceWhatSeveralDidTogether) {
  BusyTime time;
  time.Add(0, 1'000'000'000);
  time.Add(500'000'000, 1'500'000'000);
  time.Add(1'200'000'000, 1'400'000'000);
  EXPECT_DOUBLE_EQ(time.seconds(), 1.5);
  time.Add(3'000'000'000, 3'500'000'000);
  EXPECT_DOUBLE_EQ(time.seconds(), 2.0);
}

}  // namespace
}  // namespace troupe
