#include "lab/intervals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

BlockMean Of(const std::vector<double>& numbers, std::size_t length) {
  BlockMean mean(length);
  for (const double x : numbers) mean.Add(x);
  return mean;
}

TEST(BlockMean, IsAsWorkedByHandForBlocksOfEqualLength) {
  // Blocks' means 2, 6, 1 about 3: variance 7, error sqrt(7 / 3), and t of two degrees.
  const Interval found = Of({1, 3, 5, 7, 0, 2}, 2).Get();
  EXPECT_DOUBLE_EQ(found.mean, 3);
  EXPECT_NEAR(found.most - found.mean, 4.302652730 * std::sqrt(7.0 / 3), 1e-8);
  EXPECT_NEAR(found.mean - found.least, 4.302652730 * std::sqrt(7.0 / 3), 1e-8);
}

TEST(BlockMean, IsAsWorkedByHandForBlocksOfDifferentLength) {
  // Sums 6 of three and 5 of one about 2.75 each: off by -2.25 and 2.25; error sqrt(2 * 10.125)
  // / 4.
  const BlockMean mean = Of({1, 2, 3, 5}, 3);
  EXPECT_EQ(mean.blocks(), 2u);
  EXPECT_EQ(mean.count(), 4u);
  EXPECT_DOUBLE_EQ(mean.Get().mean, 2.75);
  EXPECT_NEAR(mean.Get().most, 2.75 + 12.706204736 * 1.125, 1e-7);
  EXPECT_EQ(mean.Blocks(), (std::vector<BlockMean::Block>{{3, 2}, {1, 5}}));
}

TEST(BlockMean, BlocksEndWhereTheyAreToldTo) {
  BlockMean told(100), counted = Of({1, 3, 5, 7}, 2);
  told.Add(1);
  told.Add(3);
  told.EndBlock();
  told.EndBlock();  // nothing in between: none
  told.Add(5);
  told.Add(7);
  EXPECT_EQ(told.blocks(), 2u);
  EXPECT_EQ(told.Get(), counted.Get());
}

TEST(BlockMean, OneBlockTellsNothingOfTheError) {
  const Interval found = Of({1, 2, 3}, 8).Get();
  EXPECT_DOUBLE_EQ(found.mean, 2);
  EXPECT_TRUE(std::isinf(found.least) && std::isinf(found.most));
}

TEST(BlockMean, EqualNumbersLeaveNoDoubt) {
  const Interval found = Of(std::vector<double>(40, 0.1), 8).Get();
  EXPECT_NEAR(found.most - found.least, 0, 1e-7);  // the root of sums that cancel to 1e-16
}

// What the blocks are for: neighbours that are alike.
TEST(BlockMean, HoldsTheTrueMeanAsOftenAsItSaysAndSingleNumbersDoNot) {
  Rng rng(TestSeed());
  constexpr int kTrials = 1000, kBlocks = 20, kRun = 16;
  int held = 0, held_singly = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    BlockMean in_blocks(kRun), singly(1);
    for (int block = 0; block < kBlocks; ++block) {
      const double common = rng.Normal();
      for (int i = 0; i < kRun; ++i) {
        const double x = 3 + common + 0.5 * rng.Normal();
        in_blocks.Add(x);
        singly.Add(x);
      }
    }
    const Interval a = in_blocks.Get(), b = singly.Get();
    held += a.least < 3 && 3 < a.most;
    held_singly += b.least < 3 && 3 < b.most;
  }
  // Five standard deviations of 1000 trials at 95 %.
  EXPECT_NEAR(held, 950, 5 * std::sqrt(kTrials * 0.95 * 0.05));
  EXPECT_LT(held_singly, 600);
}

TEST(BlockLength, IsARunEachOrAnEighthOfTooFew) {
  EXPECT_EQ(BlockLength(5110, 511), 511u);
  EXPECT_EQ(BlockLength(8 * 511, 511), 511u);
  EXPECT_EQ(BlockLength(1022, 511), 127u);
  EXPECT_EQ(BlockLength(3, 511), 1u);
}

TEST(ShareInterval, IsWilsons) {
  const Interval eight = ShareInterval(8, 10);
  EXPECT_DOUBLE_EQ(eight.mean, 0.8);
  EXPECT_NEAR(eight.least, 0.4901625, 1e-6);
  EXPECT_NEAR(eight.most, 0.9433178, 1e-6);
  const Interval none = ShareInterval(0, 10);
  EXPECT_EQ(none.least, 0);
  EXPECT_NEAR(none.most, 0.2775328, 1e-6);
  EXPECT_NEAR(ShareInterval(10, 10).least, 1 - 0.2775328, 1e-6);
  EXPECT_EQ(ShareInterval(0, 0), (Interval{.mean = 0, .least = 0, .most = 1}));
}

TEST(PairedShareDifference, IsAsWorkedByHand) {
  // (4.5 - 10.5) / 102 -+ 1.96 sqrt(15 / 102 - (6 / 102)^2) / sqrt(102)
  const Interval found = PairedShareDifference(10, 4, 100);
  EXPECT_DOUBLE_EQ(found.mean, -0.06);
  EXPECT_NEAR(found.least, -0.1323637, 1e-6);
  EXPECT_NEAR(found.most, 0.0147167, 1e-6);
  const Interval turned = PairedShareDifference(4, 10, 100);
  EXPECT_DOUBLE_EQ(turned.least, -found.most);
}

TEST(PairedShareDifference, FewEqualAnswersProveLittle) {
  const Interval few = PairedShareDifference(0, 0, 10), many = PairedShareDifference(0, 0, 1000);
  EXPECT_EQ(few.mean, 0);
  EXPECT_GT(few.most, 0.1);
  EXPECT_LT(many.most, 0.003);
}

TEST(StudentT975, AgreesWithTheTables) {
  EXPECT_NEAR(StudentT975(1), 12.7062, 1e-4);
  EXPECT_NEAR(StudentT975(5), 2.57058, 1e-4);
  EXPECT_NEAR(StudentT975(6), 2.44691, 2e-4);
  EXPECT_NEAR(StudentT975(10), 2.22814, 1e-4);
  EXPECT_NEAR(StudentT975(30), 2.04227, 1e-5);
  EXPECT_NEAR(StudentT975(1'000'000), 1.95997, 1e-5);
}

}  // namespace
}  // namespace troupe
