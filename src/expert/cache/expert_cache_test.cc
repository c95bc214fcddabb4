#include "expert/cache/expert_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "expert/cache/lru.h"

namespace troupe {
namespace {

constexpr ExpertGrid kGrid{.layers = 3, .experts = 6};

ExpertCache Cache(std::uint32_t slots, std::vector<std::uint32_t> quotas = {}) {
  return ExpertCache({.grid = kGrid, .slots = slots, .quotas = std::move(quotas)},
                     std::make_unique<Lru>(kGrid));
}

// Asks for an expert and brings it in; the one that had to go, if any.
std::optional<ExpertId> Bring(ExpertCache& cache, ExpertId id) {
  cache.Ask(id, 1);
  const auto admission = cache.Admit(id);
  EXPECT_TRUE(admission.has_value());
  cache.OnLoaded(id);
  return admission->evicted;
}

TEST(ExpertCacheTest, AnExpertIsAbsentThenLoadingThenResident) {
  ExpertCache cache = Cache(2);
  const ExpertId id{1, 4};
  EXPECT_EQ(cache.Ask(id, 1), Residence::kAbsent);
  ASSERT_TRUE(cache.Admit(id).has_value());
  EXPECT_EQ(cache.Ask(id, 1), Residence::kLoading);
  cache.OnLoaded(id);
  EXPECT_EQ(cache.Ask(id, 1), Residence::kResident);
  EXPECT_EQ(cache.stats(), (CacheStats{.hits = 1, .joined = 1, .misses = 1, .evictions = 0}));
}

TEST(ExpertCacheTest, AFullCopyAnswersEverybodyAndALowOneWhoAllowsIt) {
  ExpertCache cache = Cache(2);
  Bring(cache, {0, 0});
  EXPECT_EQ(cache.Ask({0, 0}, 1, ExpertCopy::kLow), Residence::kResident);
  EXPECT_EQ(cache.CopyOf({0, 0}), ExpertCopy::kFull);

  ASSERT_TRUE(cache.Admit({0, 1}, ExpertCopy::kLow).has_value());
  cache.OnLoaded({0, 1});
  EXPECT_EQ(cache.CopyOf({0, 1}), ExpertCopy::kLow);
  EXPECT_EQ(cache.Ask({0, 1}, 1, ExpertCopy::kLow), Residence::kResident);
  EXPECT_EQ(cache.stats().dropped, 0u);

  EXPECT_EQ(cache.Ask({0, 1}, 1), Residence::kAbsent);
  EXPECT_EQ(cache.stats().dropped, 1u);
  EXPECT_EQ(cache.free_slots(), 1u);
  EXPECT_EQ(Bring(cache, {0, 1}), std::nullopt);  // into the slot that came free
  EXPECT_EQ(cache.CopyOf({0, 1}), ExpertCopy::kFull);
}

TEST(ExpertCacheTest, LowCopiesAreDroppedAtOnceButForPinnedOnes) {
  ExpertCache cache = Cache(4);
  Bring(cache, {0, 0});
  for (const std::uint32_t e : {1u, 2u, 3u}) {
    ASSERT_TRUE(cache.Admit({1, e}, ExpertCopy::kLow).has_value());
    if (e != 3) cache.OnLoaded({1, e});
  }
  const ExpertCache::Pin pin = cache.PinResident({1, 1});
  EXPECT_THAT(cache.DropLowCopies(), testing::ElementsAre(ExpertId{1, 2}));
  EXPECT_EQ(cache.Find({0, 0}), Residence::kResident);
  EXPECT_EQ(cache.Find({1, 1}), Residence::kResident);
  EXPECT_EQ(cache.Find({1, 2}), Residence::kAbsent);
  EXPECT_EQ(cache.Find({1, 3}), Residence::kLoading);
  EXPECT_EQ(cache.held(1), 2u);
}

// By a policy that keeps an order, and by one that compares candidates.
TEST(ExpertCacheTest, OthersPushNoLayerBelowTheFloorOfThePool) {
  for (const char* policy : {"lru", "lfu"}) {
    const CacheShape shape{.grid = kGrid, .slots = 6, .quotas = {}, .floor = 2};
    ExpertCache cache(shape, MakeEvictionPolicy(policy, shape).value());
    for (const std::uint32_t layer : {0u, 1u}) {
      for (std::uint32_t e = 0; e < 3; ++e) Bring(cache, {layer, e});
    }
    // They were asked for longest ago, and least often: only one of each layer may go all the same.
    for (std::uint32_t e = 0; e < 6; ++e) Bring(cache, {2, e});
    EXPECT_EQ(cache.held(0), 2u) << policy;
    EXPECT_EQ(cache.held(1), 2u) << policy;
    EXPECT_EQ(cache.held(2), 2u) << policy;
    // Its own ones a layer may always give up.
    EXPECT_TRUE(Bring(cache, {0, 5}).has_value());
    EXPECT_EQ(cache.held(0), 2u) << policy;
    // Fewer slots than all floors leave what there is.
    EXPECT_EQ(cache.Resize(3).evicted.size(), 3u) << policy;
  }
}

TEST(ExpertCacheTest, NoTwoExpertsShareASlot) {
  ExpertCache cache = Cache(4);
  std::set<std::uint32_t> slots;
  for (std::uint32_t e = 0; e < 4; ++e) {
    slots.insert(cache.Admit({0, e})->slot);
    EXPECT_EQ(cache.SlotOf({0, e}), *slots.rbegin());
  }
  EXPECT_EQ(slots.size(), 4u);
}

TEST(ExpertCacheTest, AFullCacheGivesTheSlotOfTheEvictedExpertToTheNewOne) {
  ExpertCache cache = Cache(2);
  Bring(cache, {0, 0});
  Bring(cache, {0, 1});
  const std::uint32_t slot = cache.SlotOf({0, 0});
  EXPECT_EQ(Bring(cache, {2, 5}), (ExpertId{0, 0}));
  EXPECT_EQ(cache.SlotOf({2, 5}), slot);
  EXPECT_EQ(cache.Find({0, 0}), Residence::kAbsent);
  EXPECT_EQ(cache.stats().evictions, 1u);
}

TEST(ExpertCacheTest, APinnedExpertStaysUntilItsLastPinIsGone) {
  ExpertCache cache = Cache(1);
  Bring(cache, {0, 0});
  auto first = std::optional(cache.PinResident({0, 0}));
  auto second = std::optional(cache.PinResident({0, 0}));
  EXPECT_FALSE(cache.Admit({0, 1}).has_value());
  first.reset();
  EXPECT_FALSE(cache.Admit({0, 1}).has_value());
  second.reset();
  EXPECT_TRUE(cache.Admit({0, 1}).has_value());
}

TEST(ExpertCacheTest, AMovedPinIsReleasedOnce) {
  ExpertCache cache = Cache(1);
  Bring(cache, {0, 0});
  {
    ExpertCache::Pin pin = cache.PinResident({0, 0});
    ExpertCache::Pin moved = std::move(pin);
    EXPECT_FALSE(cache.Admit({0, 1}).has_value());
  }
  EXPECT_TRUE(cache.Admit({0, 1}).has_value());
}

TEST(ExpertCacheTest, AnExpertThatIsLoadingIsNotEvicted) {
  ExpertCache cache = Cache(1);
  ASSERT_TRUE(cache.Admit({0, 0}).has_value());
  EXPECT_FALSE(cache.Admit({0, 1}).has_value());
  EXPECT_EQ(cache.Find({0, 1}), Residence::kAbsent);
}

TEST(ExpertCacheTest, AnAbandonedLoadGivesItsSlotBack) {
  ExpertCache cache = Cache(1);
  ASSERT_TRUE(cache.Admit({0, 0}).has_value());
  cache.Abandon({0, 0});
  EXPECT_EQ(cache.Find({0, 0}), Residence::kAbsent);
  EXPECT_EQ(cache.free_slots(), 1u);
  EXPECT_TRUE(cache.Admit({0, 1}).has_value());
}

TEST(ExpertCacheTest, TheLayerMostAboveItsQuotaLosesFirst) {
  ExpertCache cache = Cache(5, {2, 1, 1});
  for (const ExpertId id : {ExpertId{1, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 2}}) Bring(cache, id);
  EXPECT_EQ(Bring(cache, {2, 0}), (ExpertId{1, 0}));  // layer 1 held 3 of 1
  EXPECT_EQ(cache.held(1), 2u);
}

TEST(ExpertCacheTest, ALayerAtItsQuotaReplacesItsOwnExperts) {
  ExpertCache cache = Cache(4, {2, 1, 1});
  for (const ExpertId id : {ExpertId{1, 0}, {0, 0}, {0, 1}, {2, 2}}) Bring(cache, id);
  EXPECT_EQ(Bring(cache, {0, 3}), (ExpertId{0, 0}));  // though layer 1's is older
  EXPECT_EQ(cache.held(0), 2u);
}

TEST(ExpertCacheTest, ALayerWaitsForItsOwnPinnedExpertsRatherThanRobAnother) {
  ExpertCache cache = Cache(3, {1, 1, 1});
  for (const ExpertId id : {ExpertId{0, 0}, {1, 0}, {2, 0}}) Bring(cache, id);
  auto pin = std::optional(cache.PinResident({0, 0}));
  EXPECT_FALSE(cache.Admit({0, 1}).has_value());
  pin.reset();
  EXPECT_EQ(cache.Admit({0, 1})->evicted, (ExpertId{0, 0}));
}

TEST(ExpertCacheTest, ALayerWithNothingTakesFromAnyOtherIfItMust) {
  ExpertCache cache = Cache(2, {1, 1, 0});
  Bring(cache, {0, 0});
  Bring(cache, {1, 0});
  EXPECT_EQ(Bring(cache, {2, 0}), (ExpertId{0, 0}));
}

TEST(ExpertCacheTest, FewerSlotsKeepWhatThePolicyWouldKeepInTheFirstOnes) {
  ExpertCache cache = Cache(5);
  for (std::uint32_t e = 0; e < 5; ++e) Bring(cache, {0, e});
  for (const std::uint32_t e : {0u, 3u}) cache.Ask({0, e}, 1);
  const ExpertCache::Resized resized = cache.Resize(2);
  EXPECT_THAT(resized.evicted,
              testing::ElementsAre(ExpertId{0, 1}, ExpertId{0, 2}, ExpertId{0, 4}));
  ASSERT_EQ(resized.moved.size(), 1u);
  EXPECT_EQ(resized.moved[0].id, (ExpertId{0, 3}));
  EXPECT_EQ(resized.moved[0].from, 3u);
  EXPECT_EQ(resized.moved[0].to, 1u);
  EXPECT_EQ(resized.below, 2u);
  EXPECT_EQ(cache.SlotOf({0, 3}), 1u);
  EXPECT_EQ(cache.free_slots(), 0u);
  EXPECT_EQ(Bring(cache, {1, 0}), (ExpertId{0, 0}));
  EXPECT_LT(cache.SlotOf({1, 0}), 2u);

  const ExpertCache::Resized larger = cache.Resize(4);
  EXPECT_TRUE(larger.evicted.empty() && larger.moved.empty());
  EXPECT_EQ(larger.below, 4u);
  EXPECT_EQ(Bring(cache, {1, 1}), std::nullopt);
  EXPECT_EQ(Bring(cache, {1, 2}), std::nullopt);
  EXPECT_NE(Bring(cache, {1, 3}), std::nullopt);
}

TEST(ExpertCacheTest, WithFewerSlotsLayersAboveTheirQuotasGiveFirst) {
  ExpertCache cache = Cache(5, {2, 2, 1});
  for (const ExpertId id : {ExpertId{0, 0}, {1, 0}, {1, 1}, {2, 0}, {0, 1}}) Bring(cache, id);
  cache.set_quotas({1, 0, 1});
  EXPECT_THAT(cache.Resize(2).evicted,
              testing::ElementsAre(ExpertId{1, 0}, ExpertId{1, 1}, ExpertId{0, 0}));
}

TEST(ExpertCacheTest, WhatIsPinnedOrComingStaysAboveUntilTheNextResize) {
  ExpertCache cache = Cache(4);
  for (std::uint32_t e = 0; e < 3; ++e) Bring(cache, {0, e});
  std::optional<ExpertCache::Pin> pin(cache.PinResident({0, 2}));
  cache.Ask({1, 0}, 1);
  ASSERT_TRUE(cache.Admit({1, 0}).has_value());  // into slot 3
  const ExpertCache::Resized first = cache.Resize(1);
  EXPECT_EQ(first.evicted.size(), 2u);
  EXPECT_EQ(first.below, 4u);
  EXPECT_EQ(cache.free_slots(), 1u);
  cache.OnLoaded({1, 0});
  const ExpertCache::Resized second = cache.Resize(1);
  EXPECT_EQ(second.evicted.size(), 1u);
  EXPECT_EQ(second.below, 3u);
  EXPECT_EQ(cache.SlotOf({0, 2}), 2u);
  pin.reset();
  const ExpertCache::Resized third = cache.Resize(1);
  EXPECT_EQ(third.moved.size(), 1u);
  EXPECT_EQ(third.below, 1u);
  EXPECT_EQ(cache.SlotOf({0, 2}), 0u);
}

TEST(ExpertCacheTest, SlotsAboveThatAreInUseAreUsedInPlaceOfOthers) {
  ExpertCache cache = Cache(2);
  Bring(cache, {0, 0});
  cache.Ask({0, 1}, 1);
  ASSERT_TRUE(cache.Admit({0, 1}).has_value());  // into slot 1
  std::optional<ExpertCache::Pin> pin(cache.PinResident({0, 0}));
  cache.Resize(1);
  cache.OnLoaded({0, 1});
  EXPECT_EQ(Bring(cache, {0, 2}), (ExpertId{0, 1}));
  EXPECT_EQ(cache.SlotOf({0, 2}), 1u);
}

// The rules of the header once more, over sets, as slowly and plainly as possible.
class SlowCache {
 public:
  SlowCache(std::uint32_t slots, std::vector<std::uint32_t> quotas)
      : slots_(slots), quotas_(std::move(quotas)) {}

  std::map<ExpertId, int> resident;  // to the number of its pins
  std::set<ExpertId> loading;
  std::map<ExpertId, int> asked;  // to the time of the last ask
  int time = 0;

  bool Holds(ExpertId id) const { return resident.contains(id) || loading.contains(id); }

  int Held(std::uint32_t layer) const {
    const auto here = [&](ExpertId id) { return id.layer == layer; };
    return static_cast<int>(std::ranges::count_if(loading, here)) +
           static_cast<int>(
               std::ranges::count_if(resident, [&](const auto& r) { return here(r.first); }));
  }

  bool IsFull() const { return resident.size() + loading.size() == slots_; }

  std::optional<ExpertId> Victim(ExpertId wanted) const {
    const auto oldest = [&](auto&& allowed) {
      std::optional<ExpertId> best;
      for (const auto& [id, pins] : resident) {
        if (pins > 0 || !allowed(id)) continue;
        if (!best || Age(id) < Age(*best)) best = id;
      }
      return best;
    };
    const auto anywhere = [](ExpertId) { return true; };
    if (quotas_.empty()) return oldest(anywhere);
    std::vector<std::pair<int, int>> order;
    for (std::uint32_t layer = 0; layer < kGrid.layers; ++layer) {
      const int excess = Held(layer) - static_cast<int>(quotas_[layer]);
      if (layer != wanted.layer && excess > 0)
        order.emplace_back(-excess, -static_cast<int>(layer));
    }
    std::ranges::sort(order);
    for (const auto& [excess, layer] : order) {
      const auto found = oldest(
          [&, l = static_cast<std::uint32_t>(-layer)](ExpertId id) { return id.layer == l; });
      if (found) return found;
    }
    if (Held(wanted.layer) == 0) return oldest(anywhere);
    return oldest([&](ExpertId id) { return id.layer == wanted.layer; });
  }

 private:
  int Age(ExpertId id) const {
    const auto found = asked.find(id);
    return found == asked.end() ? 0 : found->second;
  }

  std::uint32_t slots_;
  std::vector<std::uint32_t> quotas_;
};

void CompareWithSlowModel(std::uint64_t seed, std::uint32_t slots,
                          std::vector<std::uint32_t> quotas) {
  ExpertCache cache = Cache(slots, quotas);
  SlowCache slow(slots, quotas);
  std::vector<ExpertCache::Pin> pins;
  Rng rng(seed);
  for (int step = 0; step < 3000; ++step) {
    const ExpertId id{static_cast<std::uint32_t>(rng.Below(kGrid.layers)),
                      static_cast<std::uint32_t>(rng.Below(kGrid.experts))};
    const auto action = rng.Below(8);
    if (action < 3) {
      cache.Ask(id, 1);
      slow.asked[id] = ++slow.time;
    }
    if (action < 4 && !slow.Holds(id)) {
      const auto admission = cache.Admit(id);
      const auto victim = slow.IsFull() ? slow.Victim(id) : std::nullopt;
      ASSERT_EQ(admission.has_value(), !slow.IsFull() || victim.has_value()) << "step " << step;
      if (admission) {
        ASSERT_EQ(admission->evicted, victim) << "step " << step;
        if (victim) slow.resident.erase(*victim);
        slow.loading.insert(id);
      }
    } else if (action < 6 && slow.loading.contains(id)) {
      slow.loading.erase(id);
      if (action == 5) {
        cache.Abandon(id);
      } else {
        cache.OnLoaded(id);
        slow.resident[id] = 0;
      }
    } else if (action == 6 && slow.resident.contains(id)) {
      pins.push_back(cache.PinResident(id));
      ++slow.resident[id];
    } else if (action == 7 && !pins.empty()) {
      const auto at = pins.begin() + static_cast<std::ptrdiff_t>(rng.Below(pins.size()));
      --slow.resident[at->id()];
      pins.erase(at);
    }
    std::set<std::uint32_t> taken;
    for (std::uint32_t layer = 0; layer < kGrid.layers; ++layer) {
      ASSERT_EQ(cache.held(layer), static_cast<std::uint32_t>(slow.Held(layer)));
      for (std::uint32_t e = 0; e < kGrid.experts; ++e) {
        const ExpertId each{layer, e};
        ASSERT_EQ(cache.Find(each), slow.resident.contains(each)  ? Residence::kResident
                                    : slow.loading.contains(each) ? Residence::kLoading
                                                                  : Residence::kAbsent);
        if (slow.Holds(each)) {
          ASSERT_TRUE(taken.insert(cache.SlotOf(each)).second) << "slot given twice";
        }
      }
    }
    ASSERT_EQ(cache.free_slots() + taken.size(), slots);
  }
}

TEST(ExpertCacheTest, AgreesWithASlowModelOverRandomUse) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    CompareWithSlowModel(seed, 5, {});
    CompareWithSlowModel(seed, 7, {3, 2, 1});
    CompareWithSlowModel(seed, 2, {0, 0, 0});
    CompareWithSlowModel(seed, 1, {});
  }
}

}  // namespace
}  // namespace troupe
