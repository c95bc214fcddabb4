#include "expert/flow/distribution_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr Nanos kJudgedSecond = 1'000'000'000;

class DistributionJudgeTest : public testing::Test {
 protected:
  // That many layers, as far as sharing is allowed; how many were shared.
  int Run(int layers, double all_local, double shared_took, double local_took,
          std::uint32_t rows = 1) {
    int shared = 0;
    for (int i = 0; i < layers; ++i) {
      now_ += kJudgedSecond / 100;
      const bool may = judge_.MayShare(rows, now_);
      shared += may ? 1 : 0;
      judge_.OnLayer({.layer = 1,
                      .rows = rows,
                      .misses = 4,
                      .elsewhere = may ? 2u : 0u,
                      .all_local_seconds = all_local,
                      .took_seconds = may ? shared_took : local_took},
                     now_);
    }
    return shared;
  }

  DistributionJudge judge_;
  Nanos now_ = 0;
};

TEST_F(DistributionJudgeTest, WhatIsFasterGoesOn) {
  EXPECT_EQ(Run(5'000, 10e-3, 4e-3, 10e-3), 5'000);
  EXPECT_NEAR(judge_.Report()[0].gain, 2.5, 1e-6);
  EXPECT_EQ(judge_.Report()[0].shared, 5'000u);
}

TEST_F(DistributionJudgeTest, WhatIsSlowerThanTheDiskRestsAndIsTriedAgainLessAndLessOften) {
  const int first = Run(3'000, 10e-3, 15e-3, 10e-3);  // 30 s
  EXPECT_LT(first, 200);
  EXPECT_TRUE(judge_.Report()[0].rests);
  EXPECT_GT(judge_.Report()[0].rested, 2'000u);
  const int later = Run(60'000, 10e-3, 15e-3, 10e-3);  // ten minutes
  EXPECT_LT(later, 600);
  EXPECT_GT(judge_.Report()[0].rests_begun, 3u);
  EXPECT_THAT(ToString(judge_.Report()[0]), HasSubstr("rests now"));
}

TEST_F(DistributionJudgeTest, OnceItIsWorthItAgainItGoesOn) {
  Run(3'000, 10e-3, 15e-3, 10e-3);
  Run(6'000, 10e-3, 5e-3, 10e-3);
  EXPECT_EQ(Run(1'000, 10e-3, 5e-3, 10e-3), 1'000);
  EXPECT_FALSE(judge_.Report()[0].rests);
}

TEST_F(DistributionJudgeTest, SharingIsGivenUpAfterItsThirdRestAndTakenUpOnceItWasWorthIt) {
  EXPECT_FALSE(judge_.IsGivenUp());
  Run(3'000, 10e-3, 15e-3, 10e-3);  // the first rest
  EXPECT_FALSE(judge_.IsGivenUp());
  Run(12'000, 10e-3, 15e-3, 10e-3);
  EXPECT_TRUE(judge_.IsGivenUp());
  Run(12'000, 10e-3, 9.95e-3, 10e-3);
  EXPECT_TRUE(judge_.IsGivenUp()) << "it was tried, and is no better than the disk";
  Run(60'000, 10e-3, 5e-3, 10e-3);
  EXPECT_FALSE(judge_.IsGivenUp());
}

TEST_F(DistributionJudgeTest, SharingThatPaysForManyPassesIsNotGivenUpForTheOthers) {
  Run(15'000, 10e-3, 15e-3, 10e-3);
  EXPECT_TRUE(judge_.IsGivenUp());
  Run(1'000, 10e-3, 5e-3, 10e-3, /*rows=*/100);
  EXPECT_FALSE(judge_.IsGivenUp()) << "passes are large now";
  Run(1'000, 10e-3, 15e-3, 10e-3);
  EXPECT_TRUE(judge_.IsGivenUp()) << "and are small again";
}

TEST_F(DistributionJudgeTest, AfterARestNoBetterIsNotEnough) {
  Run(3'000, 10e-3, 15e-3, 10e-3);
  EXPECT_LT(Run(12'000, 10e-3, 10e-3, 10e-3), 2'000);
  DistributionJudge fresh;
  judge_ = fresh;
  EXPECT_EQ(Run(12'000, 10e-3, 10e-3, 10e-3), 12'000) << "it never rested";
}

TEST_F(DistributionJudgeTest, WhatThePlanLeavesOutCountsForBoth) {
  // Whatever is planned takes twice as long: sharing, planned at half, is as fast as ever.
  for (int i = 0; i < 50; ++i) {
    judge_.OnLayer({.rows = 1, .misses = 1, .all_local_seconds = 10e-3, .took_seconds = 20e-3},
                   now_);
  }
  EXPECT_EQ(Run(2'000, 10e-3, 12e-3, 20e-3), 2'000);
  EXPECT_NEAR(judge_.Report()[0].gain, 20.0 / 12, 1e-2);
}

TEST_F(DistributionJudgeTest, LargePassesAreJudgedByThemselves) {
  Run(3'000, 10e-3, 15e-3, 10e-3, /*rows=*/1);
  EXPECT_TRUE(judge_.Report()[0].rests);
  EXPECT_EQ(Run(1'000, 10e-3, 5e-3, 10e-3, /*rows=*/100), 1'000);
  EXPECT_FALSE(judge_.Report()[3].rests);
  EXPECT_EQ(judge_.recent().size(), DistributionJudge::kRecent);
}

}  // namespace
}  // namespace troupe
