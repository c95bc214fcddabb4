#include "expert/gate/expert_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Symmetric counts, zero on the diagonal.
class Counts {
 public:
  explicit Counts(std::uint32_t experts) : experts_(experts), counts_(experts * experts) {}

  void Set(std::uint32_t a, std::uint32_t b, double count) {
    counts_[a * experts_ + b] = counts_[b * experts_ + a] = count;
  }
  double operator()(std::uint32_t a, std::uint32_t b) const { return counts_[a * experts_ + b]; }

 private:
  std::uint32_t experts_;
  std::vector<double> counts_;
};

Counts RandomCounts(std::uint32_t experts, Rng& rng) {
  Counts counts(experts);
  for (std::uint32_t a = 0; a < experts; ++a) {
    for (std::uint32_t b = a + 1; b < experts; ++b) {
      counts.Set(a, b, static_cast<double>(rng.Below(100)));
    }
  }
  return counts;
}

TEST(ExpertGroups, EveryExpertIsInOneGroupAndSizesDifferByOneAtMost) {
  Rng rng(TestSeed());
  for (int round = 0; round < 50; ++round) {
    const auto experts = static_cast<std::uint32_t>(1 + rng.Below(24));
    const auto groups = static_cast<std::uint32_t>(1 + rng.Below(experts));
    const ExpertGroups found = GroupExperts(experts, groups, RandomCounts(experts, rng));
    ASSERT_EQ(found.size(), groups);
    EXPECT_TRUE(CheckGroups(found, experts).ok()) << CheckGroups(found, experts).message();
    for (const auto& group : found) {
      EXPECT_GE(group.size(), experts / groups);
      EXPECT_LE(group.size(), (experts + groups - 1) / groups);
    }
  }
}

TEST(ExpertGroups, ExpertsThatMeetOftenShareAGroupHoweverTheyAreNumbered) {
  Rng rng(TestSeed());
  std::vector<std::uint32_t> number(24);
  std::iota(number.begin(), number.end(), 0u);
  std::ranges::shuffle(number, rng);
  Counts counts(24);
  for (std::uint32_t a = 0; a < 24; ++a) {
    for (std::uint32_t b = a + 1; b < 24; ++b) {
      const auto chance = static_cast<double>(rng.Below(3));
      counts.Set(number[a], number[b], a / 6 == b / 6 ? 20 + chance : chance);
    }
  }
  ExpertGroups meant(4);
  for (std::uint32_t e = 0; e < 24; ++e) meant[e / 6].push_back(number[e]);
  for (auto& group : meant) std::ranges::sort(group);
  std::ranges::sort(meant);
  EXPECT_EQ(GroupExperts(24, 4, counts), meant);
}

TEST(ExpertGroups, NoExchangeOfTwoExpertsWouldGain) {
  Rng rng(TestSeed());
  for (int round = 0; round < 20; ++round) {
    const Counts counts = RandomCounts(12, rng);
    const ExpertGroups groups = GroupExperts(12, 3, counts);
    const double share = ShareInOneGroup(groups, counts);
    for (std::size_t g = 0; g < 3; ++g) {
      for (std::size_t h = g + 1; h < 3; ++h) {
        for (std::size_t i = 0; i < 4; ++i) {
          for (std::size_t j = 0; j < 4; ++j) {
            ExpertGroups other = groups;
            std::swap(other[g][i], other[h][j]);
            EXPECT_LE(ShareInOneGroup(other, counts), share + 1e-9);
          }
        }
      }
    }
  }
}

TEST(ExpertGroups, AreWithinATenthOfTheBestDivisionOfASmallLayer) {
  Rng rng(TestSeed());
  for (int round = 0; round < 20; ++round) {
    const Counts counts = RandomCounts(8, rng);
    double best = 0;
    for (std::uint32_t mask = 0; mask < 256; ++mask) {
      ExpertGroups groups(2);
      for (std::uint32_t e = 0; e < 8; ++e) groups[mask >> e & 1].push_back(e);
      if (groups[0].size() == 4) best = std::max(best, ShareInOneGroup(groups, counts));
    }
    EXPECT_GE(ShareInOneGroup(GroupExperts(8, 2, counts), counts), 0.9 * best);
  }
}

TEST(ExpertGroups, ShareInOneGroupCountsEachPairOnce) {
  Counts counts(4);
  counts.Set(0, 1, 6);
  counts.Set(2, 3, 2);
  counts.Set(1, 2, 8);
  EXPECT_EQ(ShareInOneGroup({{0, 1}, {2, 3}}, counts), 0.5);
  EXPECT_EQ(ShareInOneGroup({{0, 1, 2, 3}}, counts), 1);
  EXPECT_EQ(ShareInOneGroup({{0}, {1}}, Counts(2)), 1);
}

TEST(ExpertGroups, WhatIsNoDivisionIsNamed) {
  const auto message = [](const ExpertGroups& groups) { return CheckGroups(groups, 4).message(); };
  EXPECT_TRUE(CheckGroups({{0, 3}, {1, 2}}, 4).ok());
  EXPECT_THAT(message({{0, 1}, {2}}), HasSubstr("3 experts, 4 expected"));
  EXPECT_THAT(message({{0, 1}, {1, 2}}), HasSubstr("expert 1 is in two places"));
  EXPECT_THAT(message({{0, 1}, {2, 4}}), HasSubstr("expert 4, below 4 expected"));
  EXPECT_THAT(message({{1, 0}, {2, 3}}), HasSubstr("experts fall"));
  EXPECT_THAT(message({{2, 3}, {0, 1}}), HasSubstr("begins below"));
  EXPECT_THAT(message({{0, 1, 2, 3}, {}}), HasSubstr("no experts"));
}

}  // namespace
}  // namespace troupe
