// Passes through layers of which the last ones, or all, have no experts.
#include <gtest/gtest.h>

#include "expert/cache/lru.h"
#include "expert/forecast/told_predictor_for_test.h"
#include "expert/prefetch/prefetcher.h"

namespace troupe {
namespace {

constexpr ExpertGrid kLayersGrid{.layers = 4, .experts = 6};

class PrefetcherLayers : public testing::Test {
 protected:
  // Runs ten passes that end with layer `last`, where layers have experts up to `end`. True if the
  // governor heard of the tokens and has begun to try some without reading ahead.
  bool Tries(std::uint32_t last, std::uint32_t end) {
    Prefetcher prefetcher(cache_, 2, std::make_unique<Told>(guesses_), {.governed = true});
    const std::vector<ExpertDemand> demands = {{.expert = 1, .tokens = 1}};
    Nanos now = 0;
    for (int token = 0; token < 10; ++token) {
      prefetcher.OnPassBegins({.end_layer = end, .groups = {{.phase = Phase::kDecode, .rows = 1}}});
      for (std::uint32_t layer = 0; layer <= last; ++layer) {
        prefetcher.OnLayerAsks({layer, demands}, now += 1'000'000);
      }
    }
    return prefetcher.governor().resting();
  }

  std::vector<Guess> guesses_;
  ExpertCache cache_{{.grid = kLayersGrid, .slots = 4, .quotas = {}},
                     std::make_unique<Lru>(kLayersGrid)};
};

TEST_F(PrefetcherLayers, ATokenIsThroughWithTheLastLayerThatHasExperts) {
  EXPECT_TRUE(Tries(3, 4));
  EXPECT_TRUE(Tries(2, 3)) << "the model's last layer is dense";
  EXPECT_FALSE(Tries(2, 4)) << "an error has cut the passes short";
  EXPECT_FALSE(Tries(1, 3));
}

TEST_F(PrefetcherLayers, WhatTheLastLayerWithExpertsNeedsIsNotInTheTimeThatIsCompared) {
  Prefetcher prefetcher(cache_, 2, std::make_unique<Told>(guesses_));
  const std::vector<ExpertDemand> demands = {{.expert = 1, .tokens = 1}};
  prefetcher.OnPassBegins({.end_layer = 2, .groups = {{.phase = Phase::kDecode, .rows = 1}}});
  for (const std::uint32_t layer : {0u, 1u}) {
    prefetcher.OnLayerAsks({layer, demands}, layer + 1);
    prefetcher.OnFound({layer, 1}, Residence::kAbsent);
  }
  EXPECT_EQ(prefetcher.loads_needed(), 1u);
}

TEST_F(PrefetcherLayers, ALongPassWithoutExpertsWantsNone) {
  Prefetcher prefetcher(cache_, 2, std::make_unique<Told>(guesses_), {.governed = false});
  const std::vector<RowGroupFacts> rows = {{.phase = Phase::kPrompt, .rows = 32}};
  prefetcher.OnPassBegins({.first_layer = 2, .end_layer = 2, .groups = rows});
  EXPECT_EQ(prefetcher.Next(0), std::nullopt);
  prefetcher.OnPassBegins({.first_layer = 2, .end_layer = 3, .groups = rows});
  EXPECT_EQ(prefetcher.Next(0), (ExpertId{2, 0}));
}

}  // namespace
}  // namespace troupe
