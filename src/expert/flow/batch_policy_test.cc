#include "expert/flow/batch_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;

BatchCandidate Decode(RequestId request, std::uint32_t passed_over = 0) {
  return {.request = request, .phase = Phase::kDecode, .passed_over = passed_over};
}
BatchCandidate Prompt(RequestId request, std::uint32_t left) {
  return {.request = request, .phase = Phase::kPrompt, .prompt_left = left};
}
BatchCandidate WholePrompt(RequestId request, std::uint32_t whole, std::uint32_t behind = 0) {
  BatchCandidate prompt = Prompt(request, whole + behind);
  prompt.whole = whole;
  return prompt;
}
BatchRows DecodeRow(RequestId request) {
  return {.request = request, .phase = Phase::kDecode, .rows = 1};
}
BatchRows PromptRows(RequestId request, std::uint32_t rows) {
  return {.request = request, .phase = Phase::kPrompt, .rows = rows};
}

const RowSpeed kSpeed = RowSpeed::Even(0.010, 0.002);

TEST(BatchPolicy, APromptAloneTakesAllRows) {
  const auto choice = ChooseBatch({{Prompt(1, 2048)}}, kSpeed, {.most_rows = 512});
  EXPECT_THAT(choice.rows, ElementsAre(PromptRows(1, 512)));
}

TEST(BatchPolicy, AChunkBesideDecodesIsCutByTime) {
  const std::vector<BatchCandidate> waiting = {Prompt(1, 2048), Decode(2), Decode(3)};
  const auto choice = ChooseBatch(waiting, kSpeed, {.target_seconds = 0.2});
  EXPECT_THAT(choice.rows, ElementsAre(DecodeRow(2), DecodeRow(3), PromptRows(1, 90)));
  EXPECT_NEAR(choice.predicted_seconds, 0.2, 1e-9);
  EXPECT_EQ(ToString(choice), "2 decodes, prompt 1: 90 rows; 200.0 ms expected");
}

TEST(BatchPolicy, PromptsThatAreNotCutGoWholeOrWait) {
  const BatchLimits limits{.most_rows = 512, .target_seconds = 0.2};
  // By time 90 rows would fit: the first prompt goes whatever it takes, and alone.
  std::vector<BatchCandidate> waiting = {WholePrompt(1, 300), WholePrompt(2, 40), Decode(3),
                                         Decode(4)};
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows,
              ElementsAre(DecodeRow(3), DecodeRow(4), PromptRows(1, 300)));
  waiting = {WholePrompt(1, 50), WholePrompt(2, 40), WholePrompt(5, 1), Decode(3), Decode(4)};
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows,
              ElementsAre(DecodeRow(3), DecodeRow(4), PromptRows(1, 50), PromptRows(2, 40)));
  waiting = {WholePrompt(1, 50), WholePrompt(2, 41), WholePrompt(5, 1), Decode(3), Decode(4)};
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows,
              ElementsAre(DecodeRow(3), DecodeRow(4), PromptRows(1, 50)));
  // The longest that fits beside the decodes, which keep their guesses to themselves.
  waiting = {WholePrompt(1, 510), Decode(3), Decode(4)};
  waiting[1].guesses = 8;
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows,
              ElementsAre(DecodeRow(3), DecodeRow(4), PromptRows(1, 510)));
  // Without decodes nobody waits: all that fit.
  waiting = {WholePrompt(1, 300), WholePrompt(2, 200), WholePrompt(3, 100)};
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows,
              ElementsAre(PromptRows(1, 300), PromptRows(2, 200)));
}

TEST(BatchPolicy, WhatFollowsTheWholePartOfAPromptIsCutAsAnyPrompt) {
  const BatchLimits limits{.most_rows = 512, .target_seconds = 0.2};
  // By time 90 rows fit.
  std::vector<BatchCandidate> waiting = {WholePrompt(1, 50, 600), Decode(3), Decode(4)};
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows,
              ElementsAre(DecodeRow(3), DecodeRow(4), PromptRows(1, 90)));
  waiting = {WholePrompt(1, 300, 600), Decode(3), Decode(4)};
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows,
              ElementsAre(DecodeRow(3), DecodeRow(4), PromptRows(1, 300)));
  waiting = {Prompt(1, 600), WholePrompt(2, 20), Decode(3), Decode(4)};
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows,
              ElementsAre(DecodeRow(3), DecodeRow(4), PromptRows(1, 90)));
  waiting = {WholePrompt(1, 500, 600)};
  EXPECT_THAT(ChooseBatch(waiting, kSpeed, limits).rows, ElementsAre(PromptRows(1, 512)));
}

TEST(BatchPolicy, ALongPromptBesideEightDecodesKeepsEveryPassWithinTheTarget) {
  std::vector<BatchCandidate> waiting;
  for (RequestId request = 0; request < 8; ++request) waiting.push_back(Decode(request));
  waiting.push_back(Prompt(8, 2048));
  const BatchLimits limits{.target_seconds = 0.2};
  int passes = 0;
  while (waiting.back().prompt_left > 0) {
    const BatchChoice choice = ChooseBatch(waiting, kSpeed, limits);
    EXPECT_LE(choice.predicted_seconds, limits.target_seconds + 1e-9);
    EXPECT_EQ(choice.RowsIn(Phase::kDecode), 8u);
    waiting.back().prompt_left -= choice.RowsIn(Phase::kPrompt);
    ++passes;
  }
  EXPECT_EQ(passes, 35);  // 60 rows a pass: (200 ms - 8 * 10 ms) / 2 ms
}

TEST(BatchPolicy, APromptGoesOnBesideMoreDecodesThanTheTargetHolds) {
  std::vector<BatchCandidate> waiting = {Prompt(99, 400)};
  for (RequestId request = 0; request < 50; ++request) waiting.push_back(Decode(request));
  const auto choice =
      ChooseBatch(waiting, kSpeed, {.target_seconds = 0.2, .least_chunk = 16, .most_chunks = 1});
  EXPECT_EQ(choice.RowsIn(Phase::kDecode), 50u);
  EXPECT_EQ(choice.rows.back(), PromptRows(99, 16));
}

// A longer target never leaves prompts less, however near it is to what the least chunk takes.
TEST(BatchPolicy, ALongerTargetNeverMeansASmallerChunk) {
  std::vector<BatchCandidate> waiting = {Prompt(99, 400)};
  for (RequestId request = 0; request < 8; ++request) waiting.push_back(Decode(request));
  std::uint32_t before = 0;
  for (int ms = 5; ms < 400; ++ms) {
    const auto rows =
        ChooseBatch(waiting, kSpeed, {.target_seconds = ms * 1e-3}).RowsIn(Phase::kPrompt);
    EXPECT_GE(rows, before) << ms << " ms";
    before = rows;
  }
  EXPECT_GT(before, 50u);
}

TEST(BatchPolicy, AnUnmeasuredPromptBeginsSmallBesideDecodes) {
  const std::vector<BatchCandidate> waiting = {Prompt(1, 400), Decode(2)};
  RowSpeed speed;
  speed.decode.Note(1, 0.01);
  const auto choice = ChooseBatch(waiting, speed, {.least_chunk = 16});
  EXPECT_EQ(choice.rows.back(), PromptRows(1, 16));
}

// As behind a disk: the time of a pass is that of the experts it brings in, of which the first few
// rows need most.
TEST(BatchPolicy, WhereFewRowsBringInMostExpertsChunksGrowUntilTheyPayForThem) {
  const auto seconds = [](std::uint32_t decodes, std::uint32_t rows) {
    const auto expert_share = [](double n) { return 1 - std::pow(1 - 8.0 / 128, n); };
    return 1.0 * expert_share(decodes + rows) + 0.001 * (decodes + rows);
  };
  RowSpeedMeter meter;
  std::vector<BatchCandidate> waiting = {Decode(1), Prompt(2, 4096)};
  int passes = 0;
  for (; waiting.back().prompt_left > 0; ++passes) {
    const BatchChoice choice = ChooseBatch(waiting, meter.speed(), {});
    const std::uint32_t rows = choice.RowsIn(Phase::kPrompt);
    ASSERT_GT(rows, 0u);
    meter.PassEnded(1, rows, seconds(1, rows));
    EXPECT_LE(seconds(1, rows), 2.2 * seconds(1, 16));
    waiting.back().prompt_left -= rows;
  }
  EXPECT_LT(passes, 30);  // and not 256 of 16 rows
}

TEST(BatchPolicy, FirstComeFirstServedAndTheRestGoesToTheNext) {
  const std::vector<BatchCandidate> waiting = {Prompt(1, 30), Prompt(2, 50), Prompt(3, 40)};
  const auto choice = ChooseBatch(waiting, kSpeed, {.most_rows = 100});
  EXPECT_THAT(choice.rows, ElementsAre(PromptRows(1, 30), PromptRows(2, 50), PromptRows(3, 20)));
}

TEST(BatchPolicy, TheEarliestDeadlineGoesFirst) {
  std::vector<BatchCandidate> waiting = {Prompt(1, 80), Prompt(2, 80), Prompt(3, 80)};
  waiting[1].deadline = 500;
  waiting[2].deadline = 400;
  const auto choice = ChooseBatch(waiting, kSpeed, {.most_rows = 100});
  EXPECT_THAT(choice.rows, ElementsAre(PromptRows(3, 80), PromptRows(2, 20)));
}

TEST(BatchPolicy, ARequestPassedOverTooOftenGoesBeforeDeadlines) {
  std::vector<BatchCandidate> waiting = {Prompt(1, 200), Prompt(2, 200), Prompt(3, 200)};
  waiting[0].deadline = 1;
  waiting[1].passed_over = 64;
  waiting[2].passed_over = 65;
  const auto choice = ChooseBatch(waiting, kSpeed, {.most_rows = 100, .most_passed_over = 64});
  EXPECT_THAT(choice.rows, ElementsAre(PromptRows(3, 100)));
}

TEST(BatchPolicy, MoreDecodesThanRowsTakeTurns) {
  const std::vector<BatchCandidate> waiting = {Decode(1), Decode(2, 1), Decode(3)};
  const auto choice = ChooseBatch(waiting, kSpeed, {.most_rows = 2});
  EXPECT_THAT(choice.rows, ElementsAre(DecodeRow(2), DecodeRow(1)));
}

TEST(BatchPolicy, DecodesThatFillThePassLeaveARowToAPrompt) {
  const std::vector<BatchCandidate> waiting = {Prompt(9, 40), Decode(1), Decode(2), Decode(3)};
  for (const std::uint32_t rows : {2u, 3u}) {
    const auto choice = ChooseBatch(waiting, kSpeed, {.most_rows = rows});
    EXPECT_EQ(choice.RowsIn(Phase::kDecode), rows - 1);
    EXPECT_EQ(choice.rows.back(), PromptRows(9, 1));
  }
}

TEST(BatchPolicy, APromptAndDecodesTakeTurnsInPassesOfOneRow) {
  std::vector<BatchCandidate> waiting = {Prompt(0, 3), Decode(1), Decode(2)};
  std::vector<std::uint32_t> rows(3);
  for (int pass = 0; pass < 9; ++pass) {
    const auto choice = ChooseBatch(waiting, kSpeed, {.most_rows = 1});
    ASSERT_EQ(choice.rows.size(), 1u);
    for (BatchCandidate& candidate : waiting) ++candidate.passed_over;
    waiting[choice.rows[0].request].passed_over = 0;
    rows[choice.rows[0].request] += choice.rows[0].rows;
  }
  EXPECT_THAT(rows, ElementsAre(3, 3, 3));
}

TEST(BatchPolicy, GuessesRideWhereRowsAreLeft) {
  std::vector<BatchCandidate> waiting = {Decode(1), Decode(2), Decode(3)};
  waiting[0].guesses = 3;
  waiting[2].guesses = 9;
  const BatchChoice choice = ChooseBatch(waiting, kSpeed, {.most_rows = 10});
  ASSERT_EQ(choice.rows.size(), 3u);
  EXPECT_EQ(choice.rows[0].guesses, 3u);
  EXPECT_EQ(choice.rows[1].guesses, 0u);
  EXPECT_EQ(choice.rows[2].guesses, 4u);
  EXPECT_EQ(choice.RowsIn(Phase::kDecode), 3u);
}

TEST(BatchPolicy, GuessesLeaveAPromptItsLeastChunk) {
  std::vector<BatchCandidate> waiting = {Decode(1), Prompt(2, 300)};
  waiting[0].guesses = 50;
  const BatchChoice choice =
      ChooseBatch(waiting, kSpeed, {.most_rows = 32, .target_seconds = 0.01, .least_chunk = 16});
  EXPECT_EQ(choice.rows[0].guesses, 15u);
  EXPECT_EQ(choice.RowsIn(Phase::kPrompt), 16u);
}

TEST(BatchPolicy, GuessesOfAPromptComeBehindItsLastToken) {
  std::vector<BatchCandidate> waiting = {Prompt(1, 20)};
  waiting[0].guesses = 6;
  EXPECT_EQ(ChooseBatch(waiting, kSpeed, {.most_rows = 16}).rows[0].guesses, 0u);
  EXPECT_EQ(ChooseBatch(waiting, kSpeed, {.most_rows = 24}).rows[0].guesses, 4u);
}

TEST(BatchPolicy, NobodyWaitingIsAnEmptyPass) {
  EXPECT_EQ(ChooseBatch({}, kSpeed, {}), BatchChoice());
}

// Requests come and go at random; the rules hold in every pass.
TEST(BatchPolicy, NoRequestStarvesAndEveryDecodeRides) {
  Rng rng(TestSeed());
  for (int round = 0; round < 60; ++round) {
    const BatchLimits limits{.most_rows = 16 + static_cast<std::uint32_t>(rng.Below(100)),
                             .target_seconds = 0.05 + 0.2 * rng.Uniform(),
                             .least_chunk = 8,
                             .most_passed_over = 10};
    const RowSpeed speed = RowSpeed::Even(0.02 * rng.Uniform(), 0.004 * rng.Uniform());
    std::vector<BatchCandidate> waiting;
    std::map<RequestId, std::uint32_t> decodes_left;
    RequestId next = 0;
    for (int pass = 0; pass < 400; ++pass) {
      if (waiting.size() < 12 && rng.Below(3) == 0) {
        waiting.push_back(Prompt(next, 1 + static_cast<std::uint32_t>(rng.Below(300))));
        if (rng.Below(3) == 0) waiting.back().guesses = static_cast<std::uint32_t>(rng.Below(70));
        if (rng.Below(2) == 0) waiting.back().deadline = static_cast<Nanos>(rng.Below(1000));
        decodes_left[next++] = 1 + static_cast<std::uint32_t>(rng.Below(40));
      }
      const BatchChoice choice = ChooseBatch(waiting, speed, limits);
      std::map<RequestId, std::uint32_t> got;
      std::uint32_t guesses = 0;
      for (const BatchRows& rows : choice.rows) {
        ASSERT_GT(rows.rows, 0u);
        guesses += rows.guesses;
        ASSERT_TRUE(got.emplace(rows.request, rows.rows).second) << "twice in a pass";
      }
      const std::uint32_t prompts = choice.RowsIn(Phase::kPrompt);
      const std::uint32_t decodes = choice.RowsIn(Phase::kDecode);
      ASSERT_LE(prompts + decodes + guesses, limits.most_rows);
      ASSERT_EQ(waiting.empty(), choice.rows.empty());
      if (decodes > 0 && prompts > limits.least_chunk) {
        const double stretched = speed.decode.At(decodes + guesses) +
                                 limits.most_chunks * speed.prompt.At(limits.least_chunk);
        ASSERT_LE(choice.predicted_seconds, std::max(limits.target_seconds, stretched) + 1e-9)
            << ToString(choice);
      }
      for (BatchCandidate& candidate : waiting) {
        const auto found = got.find(candidate.request);
        candidate.passed_over = found == got.end() ? candidate.passed_over + 1 : 0;
        ASSERT_LE(candidate.passed_over, limits.most_passed_over + 12) << "starves";
        if (candidate.phase == Phase::kDecode) {
          ASSERT_TRUE(found != got.end()) << "a decode was left out of " << ToString(choice);
          --decodes_left[candidate.request];
        } else if (found != got.end()) {
          ASSERT_LE(found->second, candidate.prompt_left);
          candidate.prompt_left -= found->second;
          if (candidate.prompt_left == 0) candidate.phase = Phase::kDecode;
        }
      }
      std::erase_if(waiting, [&](const BatchCandidate& candidate) {
        return candidate.phase == Phase::kDecode && decodes_left[candidate.request] == 0;
      });
    }
  }
}

}  // namespace
}  // namespace troupe
