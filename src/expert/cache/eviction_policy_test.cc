#include "expert/cache/eviction_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "base/rng.h"
#include "expert/cache/askers_for_test.h"
#include "expert/cache/belady.h"
#include "expert/cache/expert_cache.h"
#include "expert/cache/lfu.h"
#include "expert/cache/lru.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kOneLayer{.layers = 1, .experts = 8};

std::vector<ExpertId> Ids(std::initializer_list<std::uint32_t> experts) {
  std::vector<ExpertId> ids;
  for (const std::uint32_t expert : experts) ids.push_back({0, expert});
  return ids;
}

ExpertId Chosen(EvictionPolicy& policy, const std::vector<ExpertId>& candidates) {
  return candidates[policy.Choose(candidates)];
}

// Hits of a cache of `slots` slots over a sequence of asks.
std::uint64_t Hits(std::unique_ptr<EvictionPolicy> policy, std::span<const ExpertId> asks,
                   std::uint32_t slots) {
  ExpertCache cache({.grid = kOneLayer, .slots = slots, .quotas = {}}, std::move(policy));
  for (const ExpertId id : asks) {
    if (cache.Ask(id, 1) != Residence::kAbsent) continue;
    EXPECT_TRUE(cache.Admit(id).has_value());
    cache.OnLoaded(id);
  }
  return cache.stats().hits;
}

// The most hits that any choice of victims gives, by trying all of them.
std::uint64_t MostHits(std::span<const ExpertId> asks, std::uint32_t slots) {
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> known;  // (position, set) -> hits
  const auto best = [&](auto&& self, std::size_t at, std::uint32_t set) -> std::uint64_t {
    if (at == asks.size()) return 0;
    const auto key = std::pair(at, set);
    if (const auto found = known.find(key); found != known.end()) return found->second;
    const std::uint32_t bit = 1u << asks[at].expert;
    std::uint64_t most = 0;
    if (set & bit) {
      most = 1 + self(self, at + 1, set);
    } else if (static_cast<std::uint32_t>(__builtin_popcount(set)) < slots) {
      most = self(self, at + 1, set | bit);
    } else {
      for (std::uint32_t victim = set; victim != 0; victim &= victim - 1) {
        most = std::max(most, self(self, at + 1, (set & ~(victim & -victim)) | bit));
      }
    }
    return known[key] = most;
  };
  return best(best, 0, 0);
}

TEST(LruTest, GivesUpTheExpertAskedForLongestAgo) {
  Lru lru(kOneLayer);
  for (const ExpertId id : Ids({3, 1, 2, 3})) lru.OnAsked(id, One(1));
  EXPECT_EQ(Chosen(lru, Ids({1, 2, 3})), (ExpertId{0, 1}));
  EXPECT_EQ(Chosen(lru, Ids({3, 2})), (ExpertId{0, 2}));
}

TEST(LruTest, GivesUpOneThatWasNeverAskedForFirst) {
  Lru lru(kOneLayer);
  lru.OnAsked({0, 1}, One(1));
  EXPECT_EQ(Chosen(lru, Ids({1, 5})), (ExpertId{0, 5}));
}

TEST(LfuTest, CountsTokensAndNotAsks) {
  Lfu lfu(kOneLayer);
  lfu.OnAsked({0, 1}, One(1));
  lfu.OnAsked({0, 1}, One(1));
  lfu.OnAsked({0, 2}, One(30));
  EXPECT_EQ(Chosen(lfu, Ids({1, 2})), (ExpertId{0, 1}));
}

TEST(LfuTest, OfEquallyUsedOnesGivesUpTheOneAskedForLongestAgo) {
  Lfu lfu(kOneLayer);
  for (const ExpertId id : Ids({4, 2, 6})) lfu.OnAsked(id, One(1));
  EXPECT_EQ(Chosen(lfu, Ids({2, 4, 6})), (ExpertId{0, 4}));
}

TEST(LfuTest, RemembersExpertsThatLeftTheCache) {
  Lfu lfu(kOneLayer);
  lfu.OnAsked({0, 1}, One(10));
  lfu.OnEvicted({0, 1});
  lfu.OnAsked({0, 2}, One(5));
  lfu.OnAsked({0, 1}, One(1));
  EXPECT_EQ(Chosen(lfu, Ids({1, 2})), (ExpertId{0, 2}));
}

TEST(OptimumTest, GivesUpTheExpertWhoseNextUseIsFarthest) {
  const std::vector<ExpertId> future = Ids({1, 2, 3, 2, 1, 3});
  Optimum optimum(kOneLayer, future);
  for (std::size_t i = 0; i < 3; ++i) optimum.OnAsked(future[i], One(1));
  EXPECT_EQ(Chosen(optimum, Ids({1, 2, 3})), (ExpertId{0, 3}));
  EXPECT_EQ(Chosen(optimum, Ids({1, 2, 3, 7})), (ExpertId{0, 7}));  // never again
}

TEST(OptimumTest, HitsAsOftenAsTheBestOfAllChoicesAndNoOtherPolicyMoreOften) {
  Rng rng(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<ExpertId> asks;
    for (int i = 0; i < 24; ++i) asks.push_back({0, static_cast<std::uint32_t>(rng.Below(6))});
    for (std::uint32_t slots = 1; slots <= 4; ++slots) {
      const std::uint64_t optimum = Hits(std::make_unique<Optimum>(kOneLayer, asks), asks, slots);
      EXPECT_EQ(optimum, MostHits(asks, slots)) << "round " << round << ", slots " << slots;
      EXPECT_LE(Hits(std::make_unique<Lru>(kOneLayer), asks, slots), optimum);
      EXPECT_LE(Hits(std::make_unique<Lfu>(kOneLayer), asks, slots), optimum);
    }
  }
}

TEST(OptimumDeathTest, StopsWhenTheRunIsNotTheRecordedOne) {
  Optimum optimum(kOneLayer, Ids({1, 2}));
  optimum.OnAsked({0, 1}, One(1));
  EXPECT_DEATH(optimum.OnAsked({0, 3}, One(1)), "future_");
}

TEST(EvictionPolicyTest, TheChoiceDoesNotDependOnTheOrderOfTheCandidates) {
  for (const std::string& name : EvictionPolicyNames()) {
    auto policy = MakeEvictionPolicy(name, {.grid = kOneLayer, .slots = 5, .quotas = {}});
    ASSERT_TRUE(policy.ok());
    for (const ExpertId id : Ids({0, 1, 5, 6, 7})) {
      (*policy)->OnAsked(id, One(1));
      (*policy)->OnAdmitted(id);
    }
    for (const ExpertId id : Ids({5, 1, 5, 0})) (*policy)->OnAsked(id, One(2));
    const ExpertId chosen = Chosen(**policy, Ids({0, 1, 5, 7, 6}));
    EXPECT_EQ(Chosen(**policy, Ids({6, 7, 5, 1, 0})), chosen) << name;
    EXPECT_EQ((*policy)->name(), name);
  }
}

// What a policy finds in its own order is what it would choose among all that may go.
TEST(EvictionPolicyTest, AnOrderThatIsKeptGivesUpTheSameExpertAsAChoice) {
  Rng rng(TestSeed());
  const ExpertGrid grid{.layers = 3, .experts = 7};
  int compared = 0;
  for (const std::string& name : EvictionPolicyNames()) {
    for (const bool quotas : {false, true}) {
      const CacheShape shape{
          .grid = grid,
          .slots = 9,
          .quotas = quotas ? std::vector<std::uint32_t>{3, 3, 3} : std::vector<std::uint32_t>()};
      auto policy = MakeEvictionPolicy(name, shape).value();
      if (!policy->keeps_order()) continue;
      std::vector<std::uint8_t> held(grid.Count()), evictable(grid.Count());
      for (int step = 0; step < 4000; ++step) {
        const ExpertId id{static_cast<std::uint32_t>(rng.Below(3)),
                          static_cast<std::uint32_t>(rng.Below(7))};
        const std::size_t index = grid.Index(id);
        if (rng.Below(5) > 0) policy->OnAsked(id, One(1));  // others are prefetched
        if (held[index] == 0) policy->OnAdmitted(id);
        held[index] = 1;
        std::optional<std::uint32_t> layer;
        if (quotas) layer = id.layer;
        std::vector<ExpertId> candidates;
        for (std::uint32_t l = 0; l < grid.layers; ++l) {
          for (std::uint32_t e = 0; e < grid.experts; ++e) {
            const std::size_t at = grid.Index({l, e});
            evictable[at] = held[at] != 0 && rng.Below(3) > 0 ? 1 : 0;  // the others are pinned
            if (evictable[at] != 0 && (!layer || l == *layer)) candidates.push_back({l, e});
          }
        }
        const auto first = policy->FirstToGo(layer, evictable);
        ASSERT_EQ(first.has_value(), !candidates.empty()) << name;
        if (!first) continue;
        ASSERT_EQ(*first, Chosen(*policy, candidates)) << name << ", step " << step;
        ++compared;
        policy->OnEvicted(*first);
        held[grid.Index(*first)] = 0;
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(EvictionPolicyTest, RefusesANameThatIsNone) {
  EXPECT_EQ(MakeEvictionPolicy("best", {.grid = kOneLayer}).status().message(),
            "'best' is no cache policy, expected lru, lfu, arc, echo or score");
}

}  // namespace
}  // namespace troupe
