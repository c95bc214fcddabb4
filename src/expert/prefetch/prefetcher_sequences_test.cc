// Passes with rows of several sequences: governed like decode unless a prompt is among them.
#include <gtest/gtest.h>

#include "expert/cache/lru.h"
#include "expert/forecast/told_predictor_for_test.h"
#include "expert/prefetch/prefetcher.h"

namespace troupe {
namespace {

constexpr ExpertGrid kSequencesGrid{.layers = 4, .experts = 6};

class PrefetcherSequences : public testing::Test {
 protected:
  std::vector<Guess> guesses_;
  Nanos now_ = 0;
  ExpertCache cache_{{.grid = kSequencesGrid, .slots = 4, .quotas = {}},
                     std::make_unique<Lru>(kSequencesGrid)};
  Prefetcher prefetcher_{cache_, 2, std::make_unique<Told>(guesses_), {.governed = false}};
};

PassFacts DecodeOf(std::uint32_t sequences) {
  PassFacts pass;
  for (SequenceId s = 0; s < sequences; ++s) {
    pass.groups.push_back({.sequence = s, .phase = Phase::kDecode, .rows = 1});
  }
  return pass;
}

TEST_F(PrefetcherSequences, DecodeRowsOfSeveralSequencesAreGovernedAsThoseOfOne) {
  for (const std::uint32_t sequences : {1u, 3u}) {
    Prefetcher governed(cache_, 2, std::make_unique<Told>(guesses_), {.governed = true});
    guesses_ = {{.expert = 0, .expected = true}};
    const std::vector<ExpertDemand> demands = {{.expert = 1, .tokens = sequences}};
    governed.OnPassBegins(DecodeOf(sequences));
    governed.OnLayerAsks({0, demands}, now_ += 1'000'000);
    governed.OnMisses(1, 1e-4);
    governed.OnForecast(1, 1, {});
    EXPECT_EQ(governed.Next(0), std::nullopt) << "before a layer was measured";
    governed.OnLayerAsks({1, demands}, now_ += 1'000'000);
    governed.OnMisses(1, 1e-4);
    governed.OnForecast(2, 1, {});
    // 1 ms a layer, 0.1 ms a load.
    EXPECT_NEAR(governed.governor().LoadsALayer(), 10, 0.1) << sequences;
    EXPECT_EQ(governed.Next(0), (ExpertId{2, 0}));
    EXPECT_FALSE(governed.is_sure());
  }
}

TEST_F(PrefetcherSequences, RowsOfAPromptAmongThemMakeItAPassOfAPrompt) {
  Prefetcher governed(cache_, 2, std::make_unique<Told>(guesses_), {.governed = true});
  guesses_ = {{.expert = 0, .expected = true}};
  PassFacts mixed = DecodeOf(2);
  mixed.groups.push_back({.sequence = 2, .phase = Phase::kPrompt, .rows = 4});
  const std::vector<ExpertDemand> demands = {{.expert = 1, .tokens = 6}};
  governed.OnPassBegins(mixed);
  governed.OnLayerAsks({0, demands}, 1);
  governed.OnForecast(1, 1, {});
  EXPECT_EQ(governed.Next(0), (ExpertId{1, 0}));
}

// A forecast for several rows has each row's first guess before any second one.
TEST_F(PrefetcherSequences, OddsOfAPlaceAreOneRowsWhateverTheNumberOfSequences) {
  guesses_ = {{.expert = 0, .expected = true},
              {.expert = 1, .expected = true},
              {.expert = 2, .expected = true},
              {.expert = 3, .expected = true}};
  const std::vector<ExpertDemand> firsts = {{.expert = 0, .tokens = 1}, {.expert = 1, .tokens = 1}};
  const double before = prefetcher_.odds().Of(1, 0);
  prefetcher_.OnPassBegins(DecodeOf(2));
  prefetcher_.OnLayerAsks({0, firsts}, 1);
  prefetcher_.OnForecast(1, 1, {});
  prefetcher_.OnLayerAsks({1, firsts}, 2);  // both rows' first guesses come true, no second one
  EXPECT_GT(prefetcher_.odds().Of(1, 0), before);
  EXPECT_LT(prefetcher_.odds().Of(1, 1), before);
  EXPECT_EQ(prefetcher_.odds().Of(1, 2), before);
}

}  // namespace
}  // namespace troupe
