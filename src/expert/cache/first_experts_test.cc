#include "expert/cache/first_experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ExpertGrid kFirstGrid{.layers = 2, .experts = 4};

TEST(FirstExpertsTest, EachLayerBeginsWithThoseItUsedMostAsFarAsItsQuotaGoes) {
  const std::vector<double> uses = {1, 5, 3, 2, 9, 8, 7, 10};
  const auto first = FirstExperts({.grid = kFirstGrid, .slots = 6, .quotas = {2, 3}}, uses);
  EXPECT_THAT(first, ElementsAre(ElementsAre(1, 2), ElementsAre(3, 0, 1)));
}

TEST(FirstExpertsTest, WithoutQuotasLayersCompeteForTheSlots) {
  const std::vector<double> uses = {1, 5, 3, 2, 9, 8, 7, 10};
  const auto first = FirstExperts({.grid = kFirstGrid, .slots = 5, .quotas = {}}, uses);
  EXPECT_THAT(first, ElementsAre(ElementsAre(1), ElementsAre(3, 0, 1, 2)));
}

TEST(FirstExpertsTest, WhatWasNeverUsedIsLeftOut) {
  const std::vector<double> uses = {0, 0, 0, 0, 0, 2, 0, 1};
  const auto first = FirstExperts({.grid = kFirstGrid, .slots = 8, .quotas = {4, 4}}, uses);
  EXPECT_THAT(first, ElementsAre(IsEmpty(), ElementsAre(1, 3)));
}

TEST(FirstExpertsTest, QuotasBeyondTheSlotsTakeNoMoreThanThese) {
  const std::vector<double> uses = {4, 3, 2, 1, 4, 3, 2, 1};
  const auto first = FirstExperts({.grid = kFirstGrid, .slots = 3, .quotas = {4, 4}}, uses);
  EXPECT_EQ(first[0].size() + first[1].size(), 3u);
}

}  // namespace
}  // namespace troupe
