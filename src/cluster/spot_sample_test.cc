#include "cluster/spot_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::Each;
using testing::Gt;
using testing::IsEmpty;
using testing::SizeIs;

SpotCheck CheckOf(std::uint64_t start, std::size_t rows) {
  return {
      .start = start, .id = {}, .rows = rows, .asked = std::vector<std::byte>(rows), .answer = {}};
}

TEST(SpotSample, WhoeverWantsAllHasEveryRowOfEveryAnswerChecked) {
  SpotSample sample(1, 1000, TestSeed());
  std::vector<std::uint32_t> all(100);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(sample.Draw(7, 100, 10), all);
  for (std::uint64_t i = 0; i < 10; ++i) sample.Keep(CheckOf(i, 100));
  EXPECT_THAT(sample.Take(), SizeIs(10));
  EXPECT_EQ(sample.left_out(), 0u);
}

TEST(SpotSample, OfAShareOfTheAnswersAnyRowMayBeLookedAt) {
  SpotSample sample(0.25, 1 << 20, TestSeed());
  std::size_t drawn = 0;
  std::vector<int> times(100);
  for (int i = 0; i < 4000; ++i) {
    const std::vector<std::uint32_t> rows = sample.Draw(7, times.size(), 10);
    drawn += rows.empty() ? 0 : 1;
    EXPECT_TRUE(std::ranges::is_sorted(rows));
    EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), rows.empty() ? 0u : 8u);
    for (const std::uint32_t row : rows) ++times.at(row);
  }
  EXPECT_NEAR(static_cast<double>(drawn), 1000, 150);
  EXPECT_THAT(times, Each(Gt(30)));  // 80 on average
}

TEST(SpotSample, NothingIsDrawnUnlessItIsAsked) {
  SpotSample sample(0, 1000, TestSeed());
  EXPECT_THAT(sample.Draw(7, 9, 1), IsEmpty());
}

TEST(SpotSample, OfASuspectAllIsLookedAtForAWhileAndOfOthersNoMoreThanBefore) {
  SpotSample sample(0, 1 << 20, TestSeed());
  sample.Suspect(7);
  for (std::uint32_t i = 0; i < SpotSample::kAnswersOfASuspect; ++i) {
    ASSERT_THAT(sample.Draw(7, 100, 10), SizeIs(100));
    sample.Keep(CheckOf(7, 100));
    ASSERT_THAT(sample.Draw(8, 100, 10), IsEmpty());
  }
  EXPECT_THAT(sample.Draw(7, 100, 10), IsEmpty());
  EXPECT_THAT(sample.Take(), SizeIs(SpotSample::kAnswersOfASuspect));
  EXPECT_EQ(sample.left_out(), 0u);
}

TEST(SpotSample, SuspectsThatWillNotAnswerAreForgottenAndOthersKeepTheirCount) {
  SpotSample sample(0, 1 << 20, TestSeed());
  for (const std::uint64_t start : {7u, 8u, 9u}) sample.Suspect(start);
  ASSERT_THAT(sample.Draw(8, 2, 10), SizeIs(2));
  const std::uint64_t here[] = {8, 11};
  sample.ForgetSuspectsBut(here);
  EXPECT_EQ(sample.suspects(), 1u);
  EXPECT_THAT(sample.Draw(7, 2, 10), IsEmpty());
  for (std::uint32_t i = 1; i < SpotSample::kAnswersOfASuspect; ++i) {
    ASSERT_THAT(sample.Draw(8, 2, 10), SizeIs(2));
  }
  EXPECT_THAT(sample.Draw(8, 2, 10), IsEmpty());
  EXPECT_EQ(sample.suspects(), 0u);
}

TEST(SpotSample, OfABurstEachAnswerHasTheSameChance) {
  SpotSample sample(0.5, 1 << 20, TestSeed());
  std::vector<int> times(40);
  for (int burst = 0; burst < 2000; ++burst) {
    for (std::uint64_t i = 0; i < times.size(); ++i) sample.Keep(CheckOf(i, 1));
    const std::vector<SpotCheck> kept = sample.Take();
    ASSERT_THAT(kept, SizeIs(8));
    for (const SpotCheck& check : kept) ++times.at(check.start);
  }
  for (const int count : times) EXPECT_NEAR(count, 400, 120);
  EXPECT_EQ(sample.left_out(), 2000u * 32);
}

TEST(SpotSample, WhatDoesNotFitIsCounted) {
  SpotSample sample(1, 100, TestSeed());
  EXPECT_THAT(sample.Draw(7, 30, 10), SizeIs(10));
  EXPECT_EQ(sample.left_out(), 20u);
  for (int i = 0; i < 5; ++i) sample.Keep(CheckOf(0, 40));
  std::size_t bytes = 0;
  for (const SpotCheck& check : sample.Take()) bytes += check.bytes();
  EXPECT_EQ(bytes, 80u);
  EXPECT_EQ(sample.left_out(), 20u + 3 * 40);
}

}  // namespace
}  // namespace troupe
