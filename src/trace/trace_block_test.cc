#include "trace/trace_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "testing/test_seed.h"
#include "trace/trace_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

const TraceHeader kHeader = TestTraceHeader(true, true);

TraceBlock SomeBlock(Rng& rng) {
  return RandomBlock(kHeader,
                     {{.sequence = 4, .position = 0, .tokens = 5},
                      {.sequence = 4, .position = 5, .tokens = 1, .phase = TracePhase::kDecode},
                      {.sequence = 7, .position = 2, .tokens = 3, .domain = 1, .joins = true}},
                     rng);
}

TEST(TraceBlockTest, SlicesJoinedAgainHaveTheSameChoicesScoresAndTokens) {
  Rng rng(TestSeed());
  for (int round = 0; round < 50; ++round) {
    const TraceBlock block = SomeBlock(rng);
    std::vector<TraceBlock> slices;
    for (std::uint32_t at = 0; at < block.tokens;) {
      const auto count = static_cast<std::uint32_t>(1 + rng.Below(block.tokens - at));
      slices.push_back(Slice(kHeader, block, at, count));
      ASSERT_TRUE(Validate(kHeader, slices.back()).ok());
      at += count;
    }
    const TraceBlock joined = Join(kHeader, slices);
    ASSERT_TRUE(Validate(kHeader, joined).ok());
    EXPECT_EQ(joined.ids, block.ids);
    EXPECT_EQ(joined.scores, block.scores);
    EXPECT_EQ(joined.all_scores, block.all_scores);
  }
}

TEST(TraceBlockTest, ASegmentThatIsCutGoesOnInTheSamePass) {
  Rng rng(1);
  const TraceBlock block = SomeBlock(rng);
  const TraceBlock tail = Slice(kHeader, block, 2, 5);
  ASSERT_EQ(tail.segments.size(), 3u);
  EXPECT_EQ(tail.segments[0],
            (TraceSegment{.sequence = 4, .position = 2, .tokens = 3, .joins = true}));
  EXPECT_FALSE(tail.segments[1].joins);
  EXPECT_EQ(tail.segments[2].tokens, 1u);
  EXPECT_TRUE(std::ranges::equal(tail.Ids(kHeader, 2, 0), block.Ids(kHeader, 2, 2)));
  EXPECT_TRUE(std::ranges::equal(tail.AllScores(kHeader, 1, 4), block.AllScores(kHeader, 1, 6)));
}

TEST(TraceBlockTest, JoiningMakesOneOfDomainsWithOneName) {
  Rng rng(1);
  const TraceBlock one = SomeBlock(rng);
  TraceBlock other = SomeBlock(rng);
  other.domains = {"maths", "law"};
  const std::vector<TraceBlock> both = {one, other};
  const TraceBlock joined = Join(kHeader, both);
  EXPECT_EQ(joined.domains, (std::vector<std::string>{"law", "", "maths"}));
  EXPECT_EQ(joined.domains[joined.segments[3].domain], "maths");
  EXPECT_EQ(joined.domains[joined.segments[5].domain], "law");
}

TEST(TraceBlockTest, SaysWhatIsWrong) {
  const auto error = [](auto change) {
    Rng rng(1);
    TraceBlock block = SomeBlock(rng);
    change(block);
    return Validate(kHeader, block).message();
  };
  EXPECT_EQ(error([](TraceBlock&) {}), "");
  EXPECT_THAT(error([](TraceBlock& b) { b.ids[9 * 3 + 4] = 12; }),
              HasSubstr("layer 2, token 1: expert 12"));
  EXPECT_THAT(error([](TraceBlock& b) { b.ids[1] = b.ids[0]; }), HasSubstr("different"));
  EXPECT_THAT(
      error([](TraceBlock& b) { b.scores.back() = std::numeric_limits<float>::quiet_NaN(); }),
      HasSubstr("layer 3, token 8: a score"));
  EXPECT_THAT(
      error([](TraceBlock& b) { b.all_scores[0] = std::numeric_limits<float>::infinity(); }),
      HasSubstr("layer 1, token 0: a score"));
  EXPECT_THAT(error([](TraceBlock& b) { b.scores.pop_back(); }), HasSubstr("scores"));
  EXPECT_THAT(error([](TraceBlock& b) { b.segments[0].tokens = 4; }), HasSubstr("segments of 8"));
  EXPECT_THAT(error([](TraceBlock& b) { b.segments[0].domain = 2; }), HasSubstr("domain 2"));
}

}  // namespace
}  // namespace troupe
