#include "expert/cache/quotas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"

namespace troupe {
namespace {

using testing::ElementsAre;

constexpr ExpertGrid kQuotaGrid{.layers = 4, .experts = 6};

TEST(EvenQuotasTest, SharesWhatIsNotSpareAmongLayersWithExperts) {
  EXPECT_THAT(EvenQuotas(kQuotaGrid, 1, 12, 2), ElementsAre(0, 4, 3, 3));
  EXPECT_THAT(EvenQuotas(kQuotaGrid, 0, 40, 3), ElementsAre(6, 6, 6, 6));  // more than there are
  EXPECT_THAT(EvenQuotas(kQuotaGrid, 0, 2, 5), ElementsAre(0, 0, 0, 0));
}

TEST(FloorTest, IsAShareOfWhatEachLayerWouldHaveAndFitsIntoTheSlots) {
  EXPECT_EQ(FloorOf(4, 12, 0), 0u);
  EXPECT_EQ(FloorOf(4, 12, 0.5), 1u);
  EXPECT_EQ(FloorOf(4, 12, 1), 3u);
  for (std::uint32_t slots = 1; slots < 40; ++slots) {
    for (const double share : {0.1, 0.25, 0.5, 0.75, 1.0}) {
      EXPECT_LE(7 * FloorOf(7, slots, share), slots);
    }
  }
}

TEST(ShallowQuotasTest, FillsShallowLayersFullyAndSharesTheRest) {
  // (14 - 1 x 6) / 3
  EXPECT_THAT(ShallowQuotas(kQuotaGrid, 0, 14, 0, 1), ElementsAre(6, 3, 3, 2));
  EXPECT_THAT(ShallowQuotas(kQuotaGrid, 1, 15, 1, 1), ElementsAre(0, 6, 4, 4));
}

TEST(ShallowQuotasTest, FillsTheShallowestFirstWhereNotAllFit) {
  EXPECT_THAT(ShallowQuotas(kQuotaGrid, 0, 8, 0, 3), ElementsAre(6, 2, 0, 0));
}

TEST(ShallowQuotasTest, LayersWithoutExpertsAmongTheOthersHaveNoShare) {
  const std::vector<bool> without = {false, true, false, true};
  EXPECT_THAT(ShallowQuotas(kQuotaGrid, 0, 9, 0, 0, without), ElementsAre(5, 0, 4, 0));
  EXPECT_THAT(ShallowQuotas(kQuotaGrid, 0, 9, 0, 1, without), ElementsAre(6, 0, 3, 0));
  EXPECT_THAT(ShallowQuotas(kQuotaGrid, 1, 9, 1, 0, without), ElementsAre(0, 0, 6, 0));
}

TEST(ShallowQuotasTest, AddUpToTheSlotsThatAreNotSpare) {
  Rng rng(4);
  for (int round = 0; round < 500; ++round) {
    const auto slots = static_cast<std::uint32_t>(rng.Below(30));
    const auto spare = static_cast<std::uint32_t>(rng.Below(5));
    const auto first = static_cast<std::uint32_t>(rng.Below(4));
    const auto quotas =
        ShallowQuotas(kQuotaGrid, first, slots, spare, static_cast<std::uint32_t>(rng.Below(5)));
    const std::uint32_t sum = std::accumulate(quotas.begin(), quotas.end(), 0u);
    EXPECT_EQ(sum, std::min(slots - std::min(slots, spare), (4 - first) * 6));
    for (std::uint32_t layer = 0; layer < first; ++layer) EXPECT_EQ(quotas[layer], 0u);
  }
}

}  // namespace
}  // namespace troupe
