#include "split/run_left.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr Nanos kS = 1'000'000'000;
constexpr EndBatch kBatch{.sequences = 4, .request_seconds = 60, .read_seconds = 0.01};

TEST(RunLeft, BehindPromptsItWaitsForTheirTokens) {
  const UnderWay here = AtTheEnd({.runs = 2, .tokens = 300, .own_tokens = 100}, kBatch, 9 * kS);
  EXPECT_TRUE(here.waits);
  EXPECT_DOUBLE_EQ(here.wait_seconds, 3);
  EXPECT_EQ(here.to_read, 100u);
}

TEST(RunLeft, WhereAllSequencesAreTakenItWaitsThoughAllBeforeItAreRead) {
  const UnderWay here = AtTheEnd({.runs = 4, .own_tokens = 100}, kBatch, 9 * kS);
  EXPECT_TRUE(here.waits);
  EXPECT_DOUBLE_EQ(here.wait_seconds, 15);
  EXPECT_EQ(here.to_read, 100u);
}

TEST(RunLeft, AnswersThatAreNotInTheLineHoldSequencesToo) {
  EndBatch batch = kBatch;
  batch.others = 3;
  EXPECT_FALSE(AtTheEnd({.own_tokens = 100}, batch, 9 * kS).waits);
  EXPECT_TRUE(AtTheEnd({.runs = 1, .own_tokens = 100}, batch, 9 * kS).waits);
  EXPECT_DOUBLE_EQ(AtTheEnd({.runs = 1, .own_tokens = 100}, batch, 9 * kS).wait_seconds, 15);
}

TEST(RunLeft, APassThatIsUnderWayReadsThoughItHasNotTold) {
  RunLeft left{.runs = 1, .own_tokens = 400, .since = kS};
  EXPECT_FALSE(AtTheEnd(left, kBatch, kS).waits);
  EXPECT_EQ(AtTheEnd(left, kBatch, kS).to_read, 400u);
  EXPECT_EQ(AtTheEnd(left, kBatch, 2 * kS).to_read, 300u);
  EXPECT_EQ(AtTheEnd(left, kBatch, 99 * kS).to_read, 0u);
  left = {.begun = true, .runs = 1, .own_tokens = 200, .since = 3 * kS};  // half of it
  EXPECT_EQ(AtTheEnd(left, kBatch, 3 * kS).to_read, 200u) << "what is told is not counted twice";
}

TEST(RunLeft, ARunThatChoosesHasNothingBeforeIt) {
  const UnderWay here = AtTheEnd({.begun = true, .runs = 7, .since = kS}, kBatch, kS);
  EXPECT_FALSE(here.waits);
  EXPECT_EQ(here.wait_seconds, 0);
  EXPECT_EQ(here.to_read, 0u);
}

TEST(RunLeft, TheNextTokenComesBehindTheWaitTheLinkAndWhatIsToBeRead) {
  const PlaceCosts costs{
      .wait_seconds = 100, .link_seconds = 0.5, .read_seconds = 0.01, .token_seconds = 0.25};
  const UnderWay waits{.place = Side::kCloud, .wait_seconds = 2, .to_read = 100, .waits = true};
  EXPECT_EQ(NextTokenIn(waits, costs), 3 * kS + kS * 3 / 4);
  EXPECT_EQ(NextTokenIn({.place = Side::kCloud}, costs), kS * 3 / 4) << "it is being chosen";
  EXPECT_EQ(NextTokenIn({.wait_seconds = 1e300}, costs), 1'000'000 * kS);
}

TEST(RunLeft, InTheCloudItWaitsAsLongAsTheCloudHasSaid) {
  RunLeft left{.begins_at = 5 * kS};
  EXPECT_TRUE(InTheCloud(left, 70, 3 * kS).waits);
  EXPECT_DOUBLE_EQ(InTheCloud(left, 70, 3 * kS).wait_seconds, 2);
  EXPECT_EQ(InTheCloud(left, 70, 3 * kS).to_read, 70u);
  EXPECT_FALSE(InTheCloud(left, 70, 6 * kS).waits) << "it is being read, as far as is known";
  left.begun = true;
  EXPECT_FALSE(InTheCloud(left, 70, 3 * kS).waits);
  EXPECT_EQ(InTheCloud(left, 70, 3 * kS).to_read, 0u);
}

}  // namespace
}  // namespace troupe
