// Passes through layers of which none has experts.
#include <gtest/gtest.h>

#include "expert/cache/lru.h"
#include "expert/forecast/told_predictor_for_test.h"
#include "expert/prefetch/prefetcher.h"

namespace troupe {
namespace {

constexpr ExpertGrid kLayersGrid{.layers = 4, .experts = 6};

class PrefetcherLayers : public testing::Test {
 protected:
  std::vector<Guess> guesses_;
  ExpertCache cache_{{.grid = kLayersGrid, .slots = 4, .quotas = {}},
                     std::make_unique<Lru>(kLayersGrid)};
};

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
