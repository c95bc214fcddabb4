#include "trace/rank_reuse.h"

#include <gtest/gtest.h>

#include "trace/trace_for_test.h"

namespace troupe {
namespace {

RankReuse ReuseOf(const TraceHeader& header, const TraceBlock& block) {
  RankReuse reuse(header);
  RankReuse::Recent recent;
  for (std::uint32_t token = 0; token < block.tokens; ++token) {
    reuse.AddToken(block, token, 0, recent);
  }
  return reuse;
}

TEST(RankReuseTest, CountsWhetherOneOfTheNextThreeTokensChoseWhatWasScoredSoHigh) {
  const TraceHeader header{.model = "m", .layers = 1, .moe_layers = {0}, .experts = 6, .top_k = 2};
  const RankReuse reuse = ReuseOf(header, {.domains = {""},
                                           .segments = {{.tokens = 5}},
                                           .tokens = 5,
                                           .ids = {0, 1, 2, 3, 2, 4, 0, 2, 3, 5}});
  EXPECT_EQ(reuse.ranks(), 2u);
  // Two tokens have three after them: 0 comes back, 1 does not; 2 does, and so does 3.
  EXPECT_DOUBLE_EQ(reuse.Reused(0, 0), 1);
  EXPECT_DOUBLE_EQ(reuse.Reused(0, 1), 0.5);
}

TEST(RankReuseTest, RanksAllExpertsWhereAllScoresAreThere) {
  const TraceHeader header{.model = "m",
                           .layers = 1,
                           .moe_layers = {0},
                           .experts = 3,
                           .top_k = 1,
                           .scores = ScoreKind::kSoftmax,
                           .all_scores = true};
  TraceBlock block{.domains = {""},
                   .segments = {{.tokens = 4}},
                   .tokens = 4,
                   .ids = {2, 1, 1, 1},
                   .scores = {.5, .5, .5, .5}};
  for (int token = 0; token < 4; ++token) {
    block.all_scores.insert(block.all_scores.end(), {.1f, .4f, .5f});  // 2, then 1, then 0
  }
  const RankReuse reuse = ReuseOf(header, block);
  ASSERT_EQ(reuse.ranks(), 3u);
  EXPECT_DOUBLE_EQ(reuse.Reused(0, 0), 0);  // 2 is not chosen again
  EXPECT_DOUBLE_EQ(reuse.Reused(0, 1), 1);  // 1, which was not chosen, is
  EXPECT_DOUBLE_EQ(reuse.Reused(0, 2), 0);
}

TEST(RankReuseTest, KnowsNothingOfShortSequencesAndDoesNotLookIntoTheNextOne) {
  const TraceHeader header{.model = "m", .layers = 1, .moe_layers = {0}, .experts = 4, .top_k = 1};
  const TraceBlock block{
      .domains = {""}, .segments = {{.tokens = 3}}, .tokens = 3, .ids = {1, 1, 1}};
  RankReuse reuse(header);
  for (int sequence = 0; sequence < 2; ++sequence) {
    RankReuse::Recent recent;
    for (std::uint32_t token = 0; token < 3; ++token) reuse.AddToken(block, token, 0, recent);
  }
  EXPECT_DOUBLE_EQ(reuse.Reused(0, 0), 0);
}

}  // namespace
}  // namespace troupe
