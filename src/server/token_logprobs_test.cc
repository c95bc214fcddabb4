#include "server/token_logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::vector<TokenId> SortedAll(std::span<const float> logits, std::size_t most) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::sort(
      ids, {}, [&](TokenId id) { return std::pair(-logits[static_cast<std::size_t>(id)], id); });
  ids.resize(std::min(most, ids.size()));
  return ids;
}

TEST(TokenLogprobs, TheMostLikelyAreThoseThatSortingAllWouldGive) {
  Rng rng(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> logits(rng.Below(300));
    const std::uint64_t kinds = 1 + rng.Below(40);  // few: many are equal
    for (float& logit : logits) logit = static_cast<float>(rng.Below(kinds)) - 5;
    const std::size_t most = rng.Below(25);
    ASSERT_EQ(MostLikely(logits, most), SortedAll(logits, most)) << round;
  }
}

}  // namespace
}  // namespace troupe
