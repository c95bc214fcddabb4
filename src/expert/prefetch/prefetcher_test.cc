#include "expert/prefetch/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expert/cache/lru.h"
#include "expert/forecast/activation_path.h"
#include "expert/forecast/previous_token.h"
#include "expert/forecast/told_predictor_for_test.h"

namespace troupe {
namespace {

constexpr ExpertGrid kGrid{.layers = 4, .experts = 6};

class PrefetcherTest : public testing::Test {
 protected:
  void Ask(std::uint32_t layer, std::vector<std::uint32_t> experts) {
    std::vector<ExpertDemand> demands;
    for (const std::uint32_t e : experts) demands.push_back({.expert = e, .tokens = 1});
    now_ += 1'000'000;
    if (layer == 0)
      prefetcher_.OnPassBegins(
          OneGroup(0, Phase::kDecode, 1));  // a pass counts from its first question
    prefetcher_.OnLayerAsks({layer, demands}, now_);
    for (const std::uint32_t e : experts) {
      prefetcher_.OnFound({layer, e}, cache_.Ask({layer, e}, 1));
    }
    prefetcher_.Release(layer);
  }
  // What made room for it.
  std::optional<ExpertId> Bring(ExpertId id) {
    const auto admission = cache_.Admit(id);
    TROUPE_CHECK(admission.has_value());
    if (admission->evicted) prefetcher_.OnEvicted(*admission->evicted);
    cache_.OnLoaded(id);
    return admission->evicted;
  }
  // Loads everything that is next; the experts, in that order.
  std::vector<std::uint32_t> LoadAll() {
    std::vector<std::uint32_t> experts;
    while (const auto id = prefetcher_.Next(0)) {
      prefetcher_.OnLoadBegins(*id, Bring(*id));
      experts.push_back(id->expert);
    }
    return experts;
  }

  // Layer 1 has a full cache of 0 to 3, and 5 of it is guessed and comes.
  void GuessPushesOut0() {
    for (const std::uint32_t e : {0u, 1u, 2u, 3u}) Bring({1, e});
    guesses_ = {{.expert = 5, .expected = true}};
    Ask(0, {});
    prefetcher_.OnForecast(1, 1, {});
    EXPECT_THAT(LoadAll(), testing::ElementsAre(5));
    EXPECT_EQ(cache_.Find({1, 0}), Residence::kAbsent);
  }

  std::vector<Guess> guesses_;
  Nanos now_ = 0;
  ExpertCache cache_{{.grid = kGrid, .slots = 4, .quotas = {}}, std::make_unique<Lru>(kGrid)};
  Prefetcher prefetcher_{cache_, 2, std::make_unique<Told>(guesses_), {.governed = false}};
};

TEST_F(PrefetcherTest, AnswersWithGuessesThatAreNotThereInTheirOrder) {
  Bring({1, 2});
  guesses_ = {{.expert = 4, .expected = true}, {.expert = 2, .expected = true}, {.expert = 0}};
  Ask(0, {0, 1});
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(4, 0));
  EXPECT_EQ(prefetcher_.stats().loads, 2u);
}

TEST_F(PrefetcherTest, WhatSomethingElseAnswersForIsNotReadAhead) {
  guesses_ = {{.expert = 4, .expected = true}, {.expert = 2, .expected = true}};
  cache_.set_covered({1, 4}, true);
  Ask(0, {0, 1});
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(2));
  cache_.set_covered({1, 4}, false);
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(4));
}

TEST_F(PrefetcherTest, KeepsGuessedResidentsInUpToAQuarterOfTheSlots) {
  for (const ExpertId id : {ExpertId{1, 0}, {1, 1}, {1, 2}, {1, 3}}) Bring(id);
  guesses_ = {{.expert = 0, .expected = true},
              {.expert = 1, .expected = true},
              {.expert = 5, .expected = true}};
  Ask(0, {0, 1});
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(5));
  EXPECT_EQ(cache_.Find({1, 0}), Residence::kResident);  // though asked for longest ago
  EXPECT_EQ(cache_.Find({1, 1}), Residence::kAbsent);
}

TEST_F(PrefetcherTest, KeepsWhatHasComeUntilItsLayerAsks) {
  guesses_ = {{.expert = 0, .expected = true}};
  Ask(0, {});
  prefetcher_.OnForecast(2, 2, {});
  prefetcher_.OnLoadBegins({2, 0}, Bring({2, 0}));
  prefetcher_.OnLoaded({2, 0});
  for (const std::uint32_t e : {0u, 1u, 2u, 3u, 4u}) Bring({0, e});
  Ask(1, {});
  for (const std::uint32_t e : {0u, 1u, 2u, 3u, 4u}) Bring({1, e});
  EXPECT_EQ(cache_.Find({2, 0}), Residence::kResident);
  Ask(2, {});
  for (const std::uint32_t e : {0u, 1u, 2u, 3u, 4u}) Bring({3, e});
  EXPECT_EQ(cache_.Find({2, 0}), Residence::kAbsent);
  EXPECT_EQ(prefetcher_.stats().wasted, 1u);
}

TEST_F(PrefetcherTest, ALaterForecastTakesAnEarlierOnesPlace) {
  guesses_ = {{.expert = 2, .expected = true}};
  Ask(0, {0, 1});
  prefetcher_.OnForecast(2, 2, {});
  EXPECT_EQ(prefetcher_.Next(0), (ExpertId{2, 2}));
  EXPECT_TRUE(prefetcher_.IsWanted({2, 2}));
  guesses_ = {{.expert = 3, .expected = true}};
  Ask(1, {0, 1});
  prefetcher_.OnForecast(2, 1, {});
  EXPECT_EQ(prefetcher_.Next(0), (ExpertId{2, 3}));
  EXPECT_FALSE(prefetcher_.IsWanted({2, 2}));
  Ask(2, {3});
  EXPECT_EQ(prefetcher_.stats().asked, 5u);
  EXPECT_EQ(prefetcher_.stats().guessed, 1u);
}

TEST_F(PrefetcherTest, WhatNobodyGuessedIsCountedAmongWhatWasAskedFor) {
  Ask(0, {0, 1});  // of a first layer nothing is guessed
  guesses_ = {{.expert = 3, .expected = true}};
  prefetcher_.OnForecast(1, 1, {});
  Ask(1, {3, 4});
  Ask(2, {0});  // nobody made a forecast of it, as while a governor rests
  EXPECT_EQ(prefetcher_.stats().asked, 5u);
  EXPECT_EQ(prefetcher_.stats().guessed, 1u);
}

TEST_F(PrefetcherTest, GuessesOfADistanceThatComeTrueMoreOftenGoFirst) {
  for (int token = 0; token < 200; ++token) {
    guesses_ = {{.expert = 2, .expected = true}};
    Ask(0, {0, 1});
    prefetcher_.OnForecast(2, 2, {});
    Ask(1, {0, 1});
    guesses_ = {{.expert = 3, .expected = true}};
    prefetcher_.OnForecast(2, 1, {});
    Ask(2, {2, 4});
    Ask(3, {0, 1});
  }
  EXPECT_GT(prefetcher_.odds().Of(2, 0), 0.9);
  EXPECT_LT(prefetcher_.odds().Of(1, 0), 0.1);
  Ask(0, {0, 1});
  guesses_ = {{.expert = 5, .expected = true}};
  prefetcher_.OnForecast(1, 1, {});
  prefetcher_.OnForecast(2, 2, {});
  EXPECT_THAT(prefetcher_.Next(0), (ExpertId{2, 5}));
}

TEST_F(PrefetcherTest, NothingIsLoadedForLayersThatAreOver) {
  guesses_ = {{.expert = 4, .expected = true}};
  Ask(0, {0, 1});
  prefetcher_.OnForecast(1, 1, {});
  Ask(1, {0, 1});
  EXPECT_EQ(prefetcher_.Next(0), std::nullopt);
  EXPECT_FALSE(prefetcher_.IsWanted({1, 4}));
}

TEST_F(PrefetcherTest, EveryLoadEndsInOneOfFourWays) {
  guesses_ = {{.expert = 0, .expected = true},
              {.expert = 1, .expected = true},
              {.expert = 2, .expected = true},
              {.expert = 3, .expected = true}};
  Ask(0, {0, 1});
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_EQ(LoadAll().size(), 4u);
  Ask(1, {0, 5});  // 0 was useful
  prefetcher_.OnCancelled({1, 1});
  Bring({1, 5});  // evicts the oldest: 1, 2 or 3
  const PrefetchStats& stats = prefetcher_.stats();
  EXPECT_EQ(stats.useful, 1u);
  EXPECT_EQ(stats.cancelled, 1u);
  EXPECT_EQ(stats.wasted + prefetcher_.waiting(), 2u);
  EXPECT_EQ(stats.loads, 4u);
  EXPECT_EQ(stats.asked, 4u);  // with the first layer's two
  EXPECT_EQ(stats.guessed, 1u);
  EXPECT_EQ(stats.expected, 1u);
}

TEST_F(PrefetcherTest, CountsHowEarlyAndHowSurelyNeededLoadsWereForeseen) {
  // Layers ask a millisecond apart. Before anything was seen a guess's odds are above a half.
  guesses_ = {{.expert = 2, .expected = true}, {.expert = 3, .expected = true}};
  Ask(0, {});
  prefetcher_.OnForecast(2, 2, {});
  Ask(1, {});
  guesses_ = {{.expert = 2, .expected = true}, {.expert = 4, .expected = true}};
  prefetcher_.OnForecast(2, 1, {});
  Ask(2, {2, 4, 5});
  prefetcher_.OnMisses(3, /*load_seconds=*/1.5e-3);
  const Foresight foresight = prefetcher_.stats().foresight;
  EXPECT_EQ(foresight.needed, 3u);
  EXPECT_EQ(foresight.named, 2u);
  EXPECT_EQ(foresight.likely, 2u);
  EXPECT_EQ(foresight.in_time, 1u);  // 2 was known for 2 ms, 4 for one
  EXPECT_EQ(foresight.from[0],
            (ForesightFrom{.named = 2, .likely = 2, .guesses = 2, .came_true = 2}));
  EXPECT_EQ(foresight.from[1],
            (ForesightFrom{.named = 1, .likely = 1, .guesses = 2, .came_true = 1}));
}

TEST_F(PrefetcherTest, WhatWasReadAheadInTimeWasANeededLoadAndAResidentWasNot) {
  Bring({1, 0});
  guesses_ = {{.expert = 0, .expected = true}, {.expert = 1, .expected = true}};
  Ask(0, {});
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(1));
  Ask(1, {0, 1});
  const Foresight foresight = prefetcher_.stats().foresight;
  EXPECT_EQ(foresight.needed, 1u);
  EXPECT_EQ(foresight.likely, 1u);
  EXPECT_EQ(foresight.from[0].guesses, 1u);  // 0 was there
}

TEST_F(PrefetcherTest, SaysWhyALoadDidNotBeginEarlier) {
  guesses_ = {{.expert = 2, .expected = true}};
  Ask(0, {});
  prefetcher_.OnForecast(1, 1, {});
  prefetcher_.OnNoSlot({1, 2});
  Ask(1, {2, 3});
  const MissForesight told = prefetcher_.ForesightOf({1, 2}, /*under_way=*/false, 1e-3);
  EXPECT_EQ(told.ahead, 1u);
  EXPECT_DOUBLE_EQ(told.lead_seconds, 1e-3);
  EXPECT_EQ(told.why(), NotEarlier::kNoSlot);
  EXPECT_EQ(prefetcher_.ForesightOf({1, 3}, false, 1e-3).why(), NotEarlier::kNotPredicted);
}

TEST_F(PrefetcherTest, OneAskedForOnItsWayIsLate) {
  guesses_ = {{.expert = 3, .expected = true}};
  Ask(0, {0, 1});
  prefetcher_.OnForecast(1, 1, {});
  ASSERT_EQ(prefetcher_.Next(0), (ExpertId{1, 3}));
  ASSERT_TRUE(cache_.Admit({1, 3}).has_value());
  prefetcher_.OnLoadBegins({1, 3}, std::nullopt);
  Ask(1, {3, 4});
  EXPECT_EQ(prefetcher_.stats().late, 1u);
  EXPECT_FALSE(prefetcher_.IsAhead({1, 3}));
}

TEST_F(PrefetcherTest, WhatAVainGuessPushedOutIsItsFaultAndNotNeeded) {
  GuessPushesOut0();
  Ask(1, {0, 4});
  EXPECT_EQ(prefetcher_.loads_needed(), 1u);  // 4; for 0 there was no slot any more
}

TEST_F(PrefetcherTest, ReadingAheadWhatAVainGuessPushedOutIsItsFaultToo) {
  GuessPushesOut0();
  guesses_ = {{.expert = 0, .expected = true}};
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(0));
  Ask(1, {0});
  EXPECT_EQ(prefetcher_.loads_needed(), 0u);
}

TEST_F(PrefetcherTest, AVainGuessThatDemandPushesOutHasDoneNoHarm) {
  GuessPushesOut0();
  prefetcher_.OnEvicted({1, 5}, /*on_demand=*/true);
  Ask(1, {0});
  EXPECT_EQ(prefetcher_.loads_needed(), 1u);
}

TEST_F(PrefetcherTest, ALoadThatWasCalledOffLeftItsSlotToDemand) {
  for (const std::uint32_t e : {0u, 1u, 2u, 3u}) Bring({1, e});
  guesses_ = {{.expert = 5, .expected = true}};
  Ask(0, {});
  prefetcher_.OnForecast(1, 1, {});
  const auto admission = cache_.Admit({1, 5});
  prefetcher_.OnLoadBegins({1, 5}, admission->evicted);
  ASSERT_EQ(admission->evicted, (ExpertId{1, 0}));
  cache_.Abandon({1, 5});
  prefetcher_.OnCancelled({1, 5});
  Ask(1, {0, 4});
  EXPECT_EQ(prefetcher_.loads_needed(), 2u);
}

TEST_F(PrefetcherTest, TheLastLayersLoadsEndAfterTheTimeThatIsCompared) {
  Ask(0, {}), Ask(1, {1}), Ask(2, {2});
  EXPECT_EQ(prefetcher_.loads_needed(), 2u);
  Ask(3, {3, 4});
  EXPECT_EQ(prefetcher_.loads_needed(), 2u);
}

TEST_F(PrefetcherTest, WhatComesAfterItsLayerHasAskedForOthersIsNotKept) {
  guesses_ = {{.expert = 0, .expected = true}};
  Ask(0, {});
  prefetcher_.OnForecast(1, 1, {});
  prefetcher_.OnLoadBegins({1, 0}, Bring({1, 0}));
  Ask(1, {});
  prefetcher_.OnLoaded({1, 0});
  for (const std::uint32_t e : {0u, 1u, 2u, 3u, 4u}) Bring({2, e});
  EXPECT_EQ(cache_.Find({1, 0}), Residence::kAbsent);
}

TEST_F(PrefetcherTest, PromptsTeachTheGovernorNothing) {
  const std::vector<ExpertDemand> many = {{.expert = 0, .tokens = 9}};
  guesses_ = {{.expert = 0, .expected = true}};
  prefetcher_.OnPassBegins(OneGroup(0, Phase::kPrompt, 9));
  for (const std::uint32_t layer : {0u, 1u, 2u}) {
    prefetcher_.OnLayerAsks({layer, many}, now_ += 1'000'000'000);
    prefetcher_.OnFound({layer, 0}, cache_.Ask({layer, 0}, 9));
    prefetcher_.OnMisses(1, 5e-4);
    prefetcher_.OnForecast(layer + 1, 1, {});
    LoadAll();
  }
  EXPECT_GT(prefetcher_.stats().useful, 0u);
  EXPECT_GT(prefetcher_.governor().LoadsALayer(), 1e9);  // how long a layer takes is not known
  prefetcher_.OnEvicted({3, 0});
  EXPECT_EQ(prefetcher_.stats().wasted, 1u);
  EXPECT_EQ(prefetcher_.governor().wasted_share(), 0);
}

TEST_F(PrefetcherTest, WhatATrueGuessPushedOutWouldHaveGoneAnyway) {
  GuessPushesOut0();
  Ask(1, {5});
  EXPECT_EQ(prefetcher_.loads_needed(), 1u);
  Ask(0, {});
  Ask(1, {0});
  EXPECT_EQ(prefetcher_.loads_needed(), 1u);
}

TEST_F(PrefetcherTest, UngovernedItLoadsNoMoreFurtherGuessesThanALayerHasTimeFor) {
  guesses_ = {{.expert = 0, .expected = true}, {.expert = 1, .expected = true}, {.expert = 2}};
  Ask(0, {});
  prefetcher_.OnMisses(1, 2e-3);  // twice as long as a layer
  Ask(1, {}), Ask(2, {});
  prefetcher_.OnForecast(3, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(0, 1));
}

TEST_F(PrefetcherTest, WhatCameAheadInTimeIsTheLinksWorkAsWell) {
  guesses_ = {{.expert = 0, .expected = true}};
  Ask(0, {});
  prefetcher_.OnMisses(0, 5e-4);
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(0));
  Ask(1, {0});
  prefetcher_.OnMisses(0, 5e-4);
  EXPECT_EQ(prefetcher_.governor().LeastOdds(), 0);
  Ask(2, {});
  EXPECT_GT(prefetcher_.governor().LeastOdds(), 0);
}

TEST_F(PrefetcherTest, APromptsTokensLoadOnlyWhatIsExpected) {
  guesses_ = {{.expert = 0, .expected = true}, {.expert = 1}, {.expert = 2, .expected = true}};
  std::vector<ExpertDemand> many = {{.expert = 0, .tokens = 5}, {.expert = 1, .tokens = 5}};
  prefetcher_.OnPassBegins(OneGroup(0, Phase::kPrompt, 2));
  prefetcher_.OnLayerAsks({0, many}, 1);
  prefetcher_.OnForecast(1, 1, {});
  EXPECT_THAT(LoadAll(), testing::ElementsAre(0, 2));
}

TEST_F(PrefetcherTest, ALongPromptWantsAllOfItsFirstLayerBeforeItAsks) {
  prefetcher_.OnPassBegins(OneGroup(0, Phase::kPrompt, 11));  // 22 choices of 6 experts
  EXPECT_EQ(prefetcher_.Next(0), std::nullopt);
  prefetcher_.OnPassBegins(OneGroup(0, Phase::kPrompt, 12));
  EXPECT_EQ(prefetcher_.Next(0), (ExpertId{0, 0}));
  const std::vector<ExpertDemand> demands = {{.expert = 0, .tokens = 12}};
  prefetcher_.OnLayerAsks({0, demands}, 1);
  EXPECT_EQ(prefetcher_.Next(0), std::nullopt);
  EXPECT_EQ(prefetcher_.stats().guessed, 0u);  // it was no guess
  EXPECT_EQ(prefetcher_.stats().asked, 1u);
}

TEST_F(PrefetcherTest, OfAPromptNoMoreLayersAreLoadedThanTheCacheHolds) {
  guesses_ = {{.expert = 1, .expected = true}};
  for (const std::uint32_t slots : {12u, 24u}) {
    ExpertCache cache({.grid = kGrid, .slots = slots, .quotas = {}}, std::make_unique<Lru>(kGrid));
    Prefetcher prefetcher(cache, 2, std::make_unique<Told>(guesses_), {.governed = false});
    prefetcher.OnPassBegins(OneGroup(0, Phase::kPrompt, 9));
    prefetcher.OnLayerAsks({0, std::span<const ExpertDemand>()}, 1);
    prefetcher.OnForecast(2, 2, {});
    EXPECT_EQ(prefetcher.Next(0).has_value(), slots == 24) << slots;
  }
}

TEST_F(PrefetcherTest, GuessesThatAreAlwaysWrongAreHardlyLoadedOnceThatIsKnown) {
  constexpr int kTokens = 400;
  const auto loads_of = [](bool governed) {
    constexpr Nanos kLayer = 1'000'000;
    std::vector<Guess> guesses;
    ExpertCache cache({.grid = kGrid, .slots = 12, .quotas = {}}, std::make_unique<Lru>(kGrid));
    Prefetcher prefetcher(cache, 2, std::make_unique<Told>(guesses), {.governed = governed});
    Nanos now = 0;
    const auto bring = [&](ExpertId id, bool on_demand) {
      const auto admission = cache.Admit(id);
      if (admission->evicted) prefetcher.OnEvicted(*admission->evicted, on_demand);
      cache.OnLoaded(id);
      return admission->evicted;
    };
    for (int token = 0; token < kTokens; ++token) {
      prefetcher.OnPassBegins(OneGroup(0, Phase::kDecode, 1));
      for (std::uint32_t layer = 0; layer < kGrid.layers; ++layer) {
        // Two of four by turns, and never 4 and 5: those are guessed.
        const std::uint32_t first = token % 2 == 0 ? 0 : 2;
        const std::vector<ExpertDemand> demands = {{.expert = first, .tokens = 1},
                                                   {.expert = first + 1, .tokens = 1}};
        prefetcher.OnLayerAsks({layer, demands}, now += kLayer);
        std::uint32_t misses = 0;
        for (const ExpertDemand& demand : demands) {
          const ExpertId id{layer, demand.expert};
          const Residence found = cache.Ask(id, 1);
          prefetcher.OnFound(id, found);
          if (found == Residence::kAbsent) bring(id, true), ++misses;
        }
        prefetcher.OnMisses(misses, 2e-4);
        guesses = {{.expert = 4, .expected = true}, {.expert = 5, .expected = true}};
        if (layer + 1 < kGrid.layers) prefetcher.OnForecast(layer + 1, 1, {});
        for (std::size_t i = 0; const auto id = prefetcher.Next(i); ++i) {
          prefetcher.OnLoadBegins(*id, bring(*id, false));
          prefetcher.OnLoaded(*id);
        }
        prefetcher.Release(layer);
      }
    }
    EXPECT_EQ(prefetcher.stats().useful, 0u);
    return prefetcher.stats().loads;
  };
  const std::uint64_t ungoverned = loads_of(false);
  EXPECT_GT(ungoverned, kTokens);
  EXPECT_LT(loads_of(true), ungoverned / 5);
}

TEST_F(PrefetcherTest, UngovernedItLoadsAndGovernedItFirstMeasures) {
  Prefetcher governed(cache_, 2, std::make_unique<Told>(guesses_), {.governed = true});
  guesses_ = {{.expert = 0, .expected = true}};
  const std::vector<ExpertDemand> one = {{.expert = 0, .tokens = 1}, {.expert = 1, .tokens = 1}};
  governed.OnPassBegins(OneGroup(0, Phase::kDecode, 1));
  governed.OnLayerAsks({0, one}, 1);
  governed.OnForecast(1, 1, {});
  EXPECT_EQ(governed.Next(0), std::nullopt);  // nothing is known of the link yet
}

TEST(PrefetcherByPathsTest, FindsRoomInAFullCacheAlthoughAllThatItHoldsHasFollowedBefore) {
  constexpr ExpertGrid kWide{.layers = 8, .experts = 8};
  constexpr std::uint32_t kShare = 4;
  ExpertCache cache({.grid = kWide,
                     .slots = kWide.layers * kShare,
                     .quotas = std::vector<std::uint32_t>(kWide.layers, kShare)},
                    std::make_unique<Lru>(kWide));
  Prefetcher prefetcher(cache, 1, std::make_unique<ActivationPath>(kWide, 1), {.governed = false});
  Nanos now = 0;
  const auto ask = [&](std::uint32_t layer, std::uint32_t expert) {
    if (layer == 0) prefetcher.OnPassBegins(OneGroup(0, Phase::kDecode, 1));
    const std::vector<ExpertDemand> demands = {{.expert = expert, .tokens = 1}};
    prefetcher.OnLayerAsks({layer, demands}, now += 1'000'000);
    prefetcher.Release(layer);
  };
  for (std::uint32_t after = 0; after < kWide.experts; ++after) {
    for (std::uint32_t times = 0; times <= after; ++times) {
      ask(0, 0);
      ask(1, after);
    }
  }
  for (std::uint32_t layer = 0; layer < kWide.layers; ++layer) {
    for (std::uint32_t e = 0; e < kShare; ++e) {
      ASSERT_TRUE(cache.Admit({layer, e}).has_value());
      cache.OnLoaded({layer, e});
    }
  }
  ask(0, 0);
  prefetcher.OnForecast(1, 1, {});
  const std::optional<ExpertId> next = prefetcher.Next(0);
  ASSERT_EQ(next, (ExpertId{1, 7}));
  EXPECT_TRUE(cache.Admit(*next).has_value()) << "every resident is kept by the guesses themselves";
}

}  // namespace
}  // namespace troupe
