// Ends and a cloud on a virtual clock, against what can be said of them without one.
#include "split/play/end_cloud_play.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace troupe {
namespace {

EngineSetup Engine(double prompt_seconds, std::uint32_t sequences) {
  return {.costs = {.row_seconds = prompt_seconds / 256}, .sequences = sequences, .limits = {}};
}

EndCloudSetup ASetup(std::uint32_t ends) {
  return {
      .end = Engine(0.2, 4), .cloud = Engine(0.05, 8), .ends = ends, .round_trip_seconds = 0.01};
}

EndCloudResult Play(const EndCloudSetup& setup, const EndCloudLoad& load, const std::string& rule) {
  return PlayEndsAndCloud(setup, load, **MakePlaceRule(rule));
}

TEST(EndCloudPlay, ARequestBesideNobodyTakesItsPassesAndTheLink) {
  const EndCloudLoad load{.prompt_tokens = 256, .seconds = 100, .per_second = 0.1};
  const EndCloudResult there = Play(ASetup(1), load, "cloud"), here = Play(ASetup(1), load, "end");
  EXPECT_NEAR(there.latency.mean(), 0.01 + 0.05, 0.002);
  EXPECT_NEAR(here.latency.mean(), 0.2, 0.01);
  EXPECT_EQ(there.answers.begun[0], 0u);
  EXPECT_EQ(here.answers.begun[1], 0u);
}

// The mean wait of one server with even times and a Poisson process: half of the time it takes,
// times load over what the load leaves.
TEST(EndCloudPlay, RequestsOfAPoissonProcessWaitAsTheTheoryOfQueuesSays) {
  EndCloudSetup setup = ASetup(1);
  setup.end.sequences = 1;
  setup.end.limits.most_rows = 256;
  for (const double load : {0.3, 0.6, 0.8}) {
    const EndCloudResult result =
        Play(setup, {.prompt_tokens = 256, .seconds = 2000, .per_second = load / 0.2}, "end");
    const double expected = 0.2 + 0.2 / 2 * load / (1 - load);
    EXPECT_NEAR(result.latency.mean(), expected, 0.05 * expected) << load;
    EXPECT_NEAR(result.end_busy, load, 0.03);
  }
}

TEST(EndCloudPlay, EverybodyIsAnsweredWholeByEveryRule) {
  for (const std::string rule : {"auto", "cloud", "end", "route-aware"}) {
    for (const std::uint32_t ends : {1u, 3u}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const EndCloudResult result = Play(ASetup(ends),
                                           {.prompts = 4,
                                            .prompt_tokens = 100,
                                            .answer_tokens = 10,
                                            .seconds = 10,
                                            .per_second = 8,
                                            .seed = seed},
                                           rule);
        EXPECT_EQ(result.latency.count(), result.requests);
        EXPECT_GT(result.requests, 30u);
        const auto& tokens = result.answers.flow.tokens;
        EXPECT_EQ(tokens[0] + tokens[1], 40 * result.requests) << rule << ' ' << seed;
      }
    }
  }
}

TEST(EndCloudPlay, BothSidesTogetherAnswerNearlyWhatEachAnswersAlone) {
  for (const std::uint32_t ends : {1u, 3u, 6u}) {
    const EndCloudLoad load{.prompts = 4, .prompt_tokens = 256, .seconds = 60, .together = 3};
    const double cloud = Play(ASetup(ends), load, "cloud").per_second;
    const double alone = Play(ASetup(ends), load, "end").per_second;
    const EndCloudResult both = Play(ASetup(ends), load, "auto");
    EXPECT_NEAR(cloud, 1 / (4 * 0.05), 0.25);
    EXPECT_NEAR(alone, ends / (4 * 0.2), 0.06 * ends);
    EXPECT_GT(both.per_second, 0.9 * (cloud + alone)) << ends;
    EXPECT_GT(both.end_busy, 0.8);
    EXPECT_GT(both.cloud_busy, 0.8);
  }
}

TEST(EndCloudPlay, WhereTheCloudIsSaturatedAnswersMoveAndWaitLess) {
  const EndCloudLoad load{.prompts = 4, .prompt_tokens = 256, .seconds = 40, .per_second = 6.5};
  EndCloudSetup setup = ASetup(6);
  setup.most_in_cloud = 64;
  const EndCloudResult cloud = Play(setup, load, "cloud"), both = Play(setup, load, "auto");
  EXPECT_EQ(cloud.answers.flow.tokens[0], 0u);
  EXPECT_LT(both.latency.mean(), 0.33 * cloud.latency.mean());
  EXPECT_GT(both.answers.flow.moved[0] + both.answers.flow.moved[1], 0u);
}

TEST(EndCloudPlay, WhatHasNoRoomInTheCloudIsAnsweredAtTheEnd) {
  EndCloudSetup setup = ASetup(1);
  setup.most_in_cloud = 4;
  const EndCloudLoad load{.prompts = 4, .prompt_tokens = 256, .seconds = 30, .together = 3};
  const EndCloudResult result = Play(setup, load, "cloud");
  EXPECT_EQ(result.latency.count(), result.requests);
  EXPECT_GT(result.answers.flow.tokens[0], 0u);
  EXPECT_GT(result.answers.flow.tokens[1], result.answers.flow.tokens[0]);
}

TEST(EndCloudPlay, TheSameSeedGivesTheSameFigures) {
  const EndCloudLoad load{.prompts = 4, .prompt_tokens = 256, .seconds = 20, .per_second = 6};
  const EndCloudResult first = Play(ASetup(3), load, "auto"), again = Play(ASetup(3), load, "auto");
  EXPECT_EQ(first.latency.mean(), again.latency.mean());
  EXPECT_EQ(first.answers.flow, again.answers.flow);
  EndCloudLoad other = load;
  other.seed = 2;
  EXPECT_NE(Play(ASetup(3), other, "auto").latency.mean(), first.latency.mean());
}

}  // namespace
}  // namespace troupe
