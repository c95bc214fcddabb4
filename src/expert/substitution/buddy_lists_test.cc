#include "expert/substitution/buddy_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::uint32_t> Experts(std::span<const Buddy> list) {
  std::vector<std::uint32_t> experts;
  for (const Buddy& buddy : list) experts.push_back(buddy.expert);
  return experts;
}

void AddTimes(Coactivations& counts, int times, std::vector<std::uint32_t> experts) {
  for (int i = 0; i < times; ++i) counts.Add(0, experts);
}

// Expert 0 meets 1 six times, 2 three times, 3 once; nobody chooses 4.
Coactivations SixThreeOne() {
  Coactivations counts({.layers = 1, .experts = 5});
  AddTimes(counts, 6, {0, 1});
  AddTimes(counts, 3, {2, 0});
  AddTimes(counts, 1, {0, 3});
  return counts;
}

TEST(CoactivationsTest, CountsTokensAndPairsWhateverTheirOrder) {
  const Coactivations counts = SixThreeOne();
  EXPECT_EQ(counts.Activations({0, 0}), 10);
  EXPECT_EQ(counts.Activations({0, 2}), 3);
  EXPECT_EQ(counts.Together(0, 0, 2), 3);
  EXPECT_EQ(counts.Together(0, 2, 0), 3);
  EXPECT_EQ(counts.Together(0, 1, 2), 0);
}

TEST(CoactivationsTest, WeighsAPairByTheSmallerShareOfTheTokensWeight) {
  Coactivations counts({.layers = 2, .experts = 3});
  const std::vector<std::uint32_t> experts = {0, 1, 2};
  const std::vector<float> weights = {0.5f, 0.25f, 0.25f};
  counts.Add(1, experts, weights, 2);
  EXPECT_DOUBLE_EQ(counts.TogetherWeighted(1, 0, 1), 0.5);
  EXPECT_DOUBLE_EQ(counts.Together(1, 0, 1), 2);
  EXPECT_DOUBLE_EQ(counts.Together(0, 0, 1), 0);
}

TEST(CoactivationsTest, WarmUpRisesToOne) {
  EXPECT_EQ(WarmUpCount(0, 10, 0.2), 0.2);
  EXPECT_DOUBLE_EQ(WarmUpCount(5, 10, 0.2), 0.6);
  EXPECT_EQ(WarmUpCount(10, 10, 0.2), 1);
  EXPECT_EQ(WarmUpCount(0, 0, 0.2), 1);
}

TEST(BuddyListsTest, AreTheShortestPrefixesThatReachTheCoverage) {
  const auto list = [](double coverage) {
    return Experts(MakeBuddyLists(SixThreeOne(), {.coverage = coverage}).Of({0, 0}));
  };
  EXPECT_THAT(list(0.5), ElementsAre(1));
  EXPECT_THAT(list(0.6), ElementsAre(1));
  EXPECT_THAT(list(0.61), ElementsAre(1, 2));
  EXPECT_THAT(list(0.9), ElementsAre(1, 2));
  EXPECT_THAT(list(1), ElementsAre(1, 2, 3));
}

TEST(BuddyListsTest, HoldEachBuddysShareAndNoMoreThanTheMost) {
  const BuddyLists lists = MakeBuddyLists(SixThreeOne(), {.coverage = 1, .most = 2});
  EXPECT_THAT(lists.Of({0, 0}), ElementsAre(Buddy{1, 0.6f}, Buddy{2, 0.3f}));
  EXPECT_THAT(lists.Of({0, 3}), ElementsAre(Buddy{0, 1.0f}));
  EXPECT_THAT(lists.Of({0, 4}), IsEmpty());
  EXPECT_DOUBLE_EQ(lists.MeanLength(), 5.0 / 4);
}

TEST(BuddyListsTest, SmoothingGivesSharesToPairsThatNeverMet) {
  const BuddyLists lists = MakeBuddyLists(SixThreeOne(), {.coverage = 1, .smoothing = 1});
  EXPECT_THAT(Experts(lists.Of({0, 0})), ElementsAre(1, 2, 3, 4));
  EXPECT_FLOAT_EQ(lists.Of({0, 0})[0].share, 7.0f / 14);
  EXPECT_THAT(lists.Of({0, 4}), IsEmpty());
}

TEST(BuddyListsTest, MayFollowTheWeightsInsteadOfTheCounts) {
  Coactivations counts({.layers = 1, .experts = 3});
  const std::vector<float> lopsided = {0.9f, 0.1f}, even = {0.5f, 0.5f};
  for (int i = 0; i < 3; ++i) counts.Add(0, std::vector<std::uint32_t>{0, 1}, lopsided);
  counts.Add(0, std::vector<std::uint32_t>{0, 2}, even);
  EXPECT_EQ(MakeBuddyLists(counts).Of({0, 0})[0].expert, 1u);
  EXPECT_EQ(MakeBuddyLists(counts, {.weighted = true}).Of({0, 0})[0].expert, 2u);
}

TEST(BuddyListsTest, AreValidAsMadeFromAnyCounts) {
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    const auto experts = static_cast<std::uint32_t>(2 + rng.Below(10));
    Coactivations counts({.layers = 2, .experts = experts});
    for (std::uint64_t token = rng.Below(30); token > 0; --token) {
      const auto a = static_cast<std::uint32_t>(rng.Below(experts));
      const auto b = static_cast<std::uint32_t>(rng.Below(experts));
      if (a != b) counts.Add(static_cast<std::uint32_t>(rng.Below(2)), std::vector{a, b});
    }
    const BuddyOptions options{.coverage = 0.1 + 0.9 * rng.Uniform(),
                               .most = static_cast<std::uint32_t>(1 + rng.Below(5)),
                               .smoothing = rng.Below(2) == 0 ? 0.0 : 0.5};
    const BuddyLists lists = MakeBuddyLists(counts, options);
    EXPECT_TRUE(Validate(lists).ok()) << Validate(lists).ToString();
    for (std::uint32_t e = 0; e < experts; ++e) {
      EXPECT_EQ(lists.Of({0, e}).empty(), counts.Activations({0, e}) == 0);
    }
  }
}

TEST(BuddyListsTest, WithAFaultAreRefused) {
  const BuddyLists good = MakeBuddyLists(SixThreeOne());
  const auto fault = [&](auto&& spoil) {
    BuddyLists lists = good;
    spoil(lists);
    return Validate(lists).message();
  };
  EXPECT_THAT(fault([](BuddyLists& l) { l.lists.pop_back(); }), HasSubstr("4 buddy lists, 5"));
  EXPECT_THAT(fault([](BuddyLists& l) { l.lists[0][0].expert = 0; }), HasSubstr("expert 0"));
  EXPECT_THAT(fault([](BuddyLists& l) { l.lists[0][0].expert = 5; }), HasSubstr("expert 5"));
  EXPECT_THAT(fault([](BuddyLists& l) { l.lists[0][1].expert = 1; }), HasSubstr("each once"));
  EXPECT_THAT(fault([](BuddyLists& l) { l.lists[0][1].share = 0.7f; }), HasSubstr("share 0.7"));
  EXPECT_THAT(fault([](BuddyLists& l) { l.lists[0][1].share = 0; }), HasSubstr("share 0"));
}

}  // namespace
}  // namespace troupe
